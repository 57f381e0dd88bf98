import type { Clock, Instant } from '../../runtime/clock.ts'
import type { AnswerHead } from './answer-head.ts'
import type { AnswerListener } from './answer-reader.ts'
import type { ConnectTimings } from './connector.ts'
import type { Deadlines, Expiring } from './deadlines.ts'

/** What a call needs of an `AbortSignal`; a real one costs more than the rest of the call's preparation. */
export interface CallSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Nobody looks at more; a target that sends more is cut off. */
const MAX_READ_BYTES = 1024 * 1024

/** `unsaid`: its beginning could not be said, so nothing of it was written. */
export type Break = 'timeout' | 'canceled' | 'error' | 'unsaid'

/** Says that the first byte is about to be sent, and answers whether it may be. */
export type Announce = (told: (mayBegin: boolean) => void) => void

/** What holds from the beginning: how long it may take, what cuts it off, and who must hear before it is sent. */
export interface ExchangeTerms {
  deadline: Instant
  signal: CallSignal | null
  /** Null: nobody must. */
  announce: Announce | null
}

/** One request and what came of it, from before it is prepared until it has ended; it ends once. */
export class Exchange implements Expiring, ConnectTimings, AnswerListener {
  readonly deadline: Instant
  place = -1
  /** Null until the target has answered. */
  head: AnswerHead | null = null
  /** The beginning of the body, in the pieces it came in. */
  readonly chunks: Buffer[] = []
  isTruncated = false
  /** Any byte may have been sent. */
  isWritten = false
  /** How it was broken off, if it was. */
  broken: Break | null = null
  error: Error | null = null
  dnsMs?: number
  connectMs?: number
  startedAt: Instant
  firstByteAt: Instant = 0
  endedAt: Instant = 0
  /** How much of the body is kept. */
  keepBytes = 4_096
  readonly #clock: Clock
  readonly #deadlines: Deadlines
  readonly #announce: Announce | null
  #signal: CallSignal | null = null
  #keptBytes = 0
  #readBytes = 0
  #abort: (() => void) | null = null
  #onOver: (() => void) | null = null

  constructor(deps: { clock: Clock; deadlines: Deadlines }, { deadline, signal, announce }: ExchangeTerms) {
    this.#clock = deps.clock
    this.#deadlines = deps.deadlines
    this.#announce = announce
    this.deadline = deadline
    this.startedAt = deps.clock.now()
    if (signal?.aborted) this.#end('canceled')
    else if (deadline <= this.startedAt) this.#end('timeout')
    else {
      deps.deadlines.add(this)
      if (signal) this.#listen(signal)
    }
  }

  get isOver(): boolean {
    return this.endedAt !== 0
  }

  /** Calls back when it has ended, or at once if it has. A promise would cost as much as the rest of this object. */
  whenOver(listener: () => void): void {
    if (this.isOver) listener()
    else this.#onOver = listener
  }

  expire(): void {
    this.#breakOff('timeout')
  }

  /** A connection for it is there: `write` is called when it may be written, and in any case if it is over. */
  whenAnnounced(write: () => void): void {
    if (this.#announce === null) write()
    else
      this.#announce((mayBegin) => {
        if (!mayBegin) this.#breakOff('unsaid')
        write()
      })
  }

  /** It is being written; `abort` cuts it off. */
  begin(abort: () => void): void {
    this.#abort = abort
    this.isWritten = true
  }

  onHead(head: AnswerHead): void {
    this.head = head
    this.firstByteAt = this.#clock.now()
  }

  onData(chunk: Buffer): boolean {
    this.#readBytes += chunk.length
    const room = this.keepBytes - this.#keptBytes
    if (room > 0) {
      // A copy: the next piece that comes in, on whatever connection, overwrites this one.
      const kept = Buffer.from(chunk.subarray(0, room))
      this.chunks.push(kept)
      this.#keptBytes += kept.length
    }
    if (chunk.length > room) this.isTruncated = true
    return this.#readBytes <= MAX_READ_BYTES
  }

  /** The answer is complete, or nobody reads more of it. */
  complete(): void {
    this.#end(null)
  }

  fail(error: Error): void {
    if (this.isOver) return
    this.error = error
    this.#end('error')
  }

  readonly #cancel = (): void => this.#breakOff('canceled')

  #listen(signal: CallSignal): void {
    this.#signal = signal
    signal.addEventListener('abort', this.#cancel)
  }

  #breakOff(broken: Break): void {
    if (this.isOver) return
    this.#end(broken)
    this.#abort?.()
  }

  #end(broken: Break | null): void {
    if (this.isOver) return
    this.broken = broken
    this.endedAt = this.#clock.now()
    this.#deadlines.remove(this)
    this.#signal?.removeEventListener('abort', this.#cancel)
    this.#onOver?.()
  }
}
