import { type AnswerHead, BrokenAnswer, readHead } from './answer-head.ts'

/** What hears an answer as it comes in. */
export interface AnswerListener {
  onHead(head: AnswerHead): void
  /** The bytes are good until it returns. False: nobody wants more of it. */
  onData(chunk: Buffer): boolean
}

const MAX_HEAD_BYTES = 16_384
const MAX_CHUNK_LINE_BYTES = 1_024
const CHUNK_LINE = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?$/
const LAST_IS_CHUNKED = /(?:^|,)\s*chunked$/i
const LINE_END = '\r\n'
const HEAD_END = '\r\n\r\n'
const PROTOCOL = Buffer.from('HTTP/1.')

type Part = 'head' | 'counted' | 'chunk size' | 'chunk' | 'chunk end' | 'trailer' | 'until close' | 'done'

/**
 * Reads the answers of one connection, one after the other, in whatever pieces they come. It is strict where two readers could
 * see two different answers in the same bytes (lengths that contradict each other, lines that end oddly), and forgiving nowhere
 * else than HTTP/1.1 asks for.
 */
export class AnswerReader {
  #listener: AnswerListener | null = null
  #part: Part = 'done'
  #isHead = false
  /** The beginning of something of which the end has not come. */
  #held: Buffer | null = null
  /** Of the body or its chunk. */
  #leftBytes = 0
  /** Of the last answer: the next one mostly begins with the same bytes, as long as its date is the same. */
  #headBytes = Buffer.alloc(0)
  #head: AnswerHead | null = null
  /** The connection may carry another request. */
  keepsAlive = false
  /** So long the target keeps it open while nothing is sent; null: it did not say. */
  keepAliveMs: number | null = null

  begin(listener: AnswerListener, request: { method: string }): void {
    this.#listener = listener
    this.#isHead = request.method === 'HEAD'
    this.#part = 'head'
    this.#held = null
    this.keepsAlive = false
    this.keepAliveMs = null
  }

  /** True: the answer is complete. Throws what makes it none. The bytes may be overwritten afterwards. */
  read(piece: Buffer): boolean {
    const bytes = this.#held === null ? piece : Buffer.concat([this.#held, piece])
    this.#held = null
    let at = 0
    while (this.#part !== 'done') {
      const next = this.#step(bytes, at)
      if (next === null) return false
      at = next
    }
    // Whoever says more than was asked for is not asked again.
    if (at < bytes.length) this.keepsAlive = false
    return true
  }

  /** The target has closed the connection. True: that is the end of its answer. */
  end(): boolean {
    return this.#part === 'until close'
  }

  /** Answers where the next part begins; null: more bytes are needed. */
  #step(bytes: Buffer, at: number): number | null {
    switch (this.#part) {
      case 'head':
        return this.#readHead(bytes, at)
      case 'chunk size':
        return this.#untilText(bytes, at, LINE_END, MAX_CHUNK_LINE_BYTES, (line) => this.#readChunkSize(line))
      case 'chunk end':
        return this.#untilText(bytes, at, LINE_END, 0, () => this.#goTo('chunk size'))
      case 'trailer':
        return this.#untilText(bytes, at, LINE_END, MAX_HEAD_BYTES, (line) => {
          if (line === '') this.#goTo('done')
        })
      default:
        return this.#readBody(bytes, at)
    }
  }

  #goTo(part: Part): void {
    this.#part = part
  }

  #untilText(bytes: Buffer, at: number, end: string, limit: number, use: (text: string) => void): number | null {
    const found = bytes.indexOf(end, at, 'latin1')
    const length = (found < 0 ? bytes.length - end.length : found) - at
    if (length > limit) throw new BrokenAnswer(`the ${this.#part} of the answer is too long or not as HTTP/1.1 has it`)
    if (found < 0) {
      this.#held = Buffer.from(bytes.subarray(at))
      return null
    }
    use(bytes.toString('latin1', at, found))
    return found + end.length
  }

  #readBody(bytes: Buffer, at: number): number | null {
    if (at >= bytes.length) return null
    const isCounted = this.#part !== 'until close'
    const end = isCounted ? Math.min(bytes.length, at + this.#leftBytes) : bytes.length
    if (isCounted) {
      this.#leftBytes -= end - at
      if (this.#leftBytes === 0) this.#goTo(this.#part === 'chunk' ? 'chunk end' : 'done')
    }
    const isWanted = this.#listener?.onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (!isWanted) {
      this.#goTo('done')
      this.keepsAlive = false
    }
    return end
  }

  #readChunkSize(line: string): void {
    const size = CHUNK_LINE.exec(line)?.[1]
    if (size === undefined) throw new BrokenAnswer('a chunk of the answer does not say how long it is')
    this.#leftBytes = Number.parseInt(size, 16)
    this.#goTo(this.#leftBytes === 0 ? 'trailer' : 'chunk')
  }

  #readHead(bytes: Buffer, at: number): number | null {
    const known = this.#headBytes
    const end = at + known.length
    if (this.#head !== null && end <= bytes.length && bytes.compare(known, 0, known.length, at, end) === 0) {
      this.#take(this.#head)
      return end
    }
    if (!beginsAs(PROTOCOL, bytes, at)) throw new BrokenAnswer('the answer is not HTTP/1.1')
    const next = this.#untilText(bytes, at, HEAD_END, MAX_HEAD_BYTES, (text) => {
      this.#head = readHead(text)
      this.#take(this.#head)
    })
    if (next !== null) this.#headBytes = Buffer.from(bytes.subarray(at, next))
    return next
  }

  #take(head: AnswerHead): void {
    if (head.statusCode === 101) throw new BrokenAnswer('the target wants to speak another protocol')
    // A hint: the answer comes after it.
    if (head.statusCode < 200) return
    this.keepsAlive = head.keepsAlive
    this.keepAliveMs = head.keepAliveMs
    this.#goTo(this.#bodyAfter(head))
    this.#listener?.onHead(head)
  }

  #bodyAfter({ statusCode, coding, length }: AnswerHead): Part {
    if (this.#isHead || statusCode === 204 || statusCode === 304) return 'done'
    if (coding !== null) {
      if (length !== null) throw new BrokenAnswer('the answer has a length and an encoding that contradicts it')
      if (LAST_IS_CHUNKED.test(coding)) return 'chunk size'
    } else if (length !== null) {
      this.#leftBytes = length
      return length === 0 ? 'done' : 'counted'
    }
    this.keepsAlive = false
    return 'until close'
  }
}

/** As far as the bytes go. */
function beginsAs(text: Buffer, bytes: Buffer, at: number): boolean {
  for (let i = 0; i < text.length && at + i < bytes.length; i++) if (bytes[at + i] !== text[i]) return false
  return true
}
