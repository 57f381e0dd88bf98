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

export type Break = 'timeout' | 'canceled' | 'error'

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
  #signal: CallSignal | null = null
  #keptBytes = 0
  #readBytes = 0
  #abort: (() => void) | null = null
  #onOver: (() => void) | null = null

  constructor(deps: { clock: Clock; deadlines: Deadlines }, until: { deadline: Instant; signal: CallSignal | null }) {
    this.#clock = deps.clock
    this.#deadlines = deps.deadlines
    this.deadline = until.deadline
    this.startedAt = deps.clock.now()
    if (until.signal?.aborted) this.#end('canceled')
    else if (until.deadline <= this.startedAt) this.#end('timeout')
    else {
      deps.deadlines.add(this)
      if (until.signal) this.#listen(until.signal)
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
