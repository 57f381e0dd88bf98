/** Places of the control words. */
const STOP = 0
const BEAT = 1
const CONTROL_BYTES = 16
const LENGTH_BYTES = 4
/** Tokens have about 110 characters; a longer one is renewed by the main loop alone. */
const TOKEN_BYTES = 192

/**
 * The tokens of all leases that a worker holds, in memory that its heartbeat thread sees: writing one costs less than a
 * message, and the thread can read them while the event loop is blocked. Layout: control words (stop, beat), a length per
 * slot (0: empty), the bytes of each slot. Only the main thread writes tokens.
 */
export class LeaseBoard {
  readonly memory: SharedArrayBuffer
  readonly slotCount: number
  readonly #control: Int32Array
  readonly #lengths: Int32Array
  readonly #bytes: Uint8Array
  readonly #free: number[]

  constructor(slotCount: number) {
    this.slotCount = slotCount
    const bytesAt = CONTROL_BYTES + slotCount * LENGTH_BYTES
    this.memory = new SharedArrayBuffer(bytesAt + slotCount * TOKEN_BYTES)
    this.#control = new Int32Array(this.memory, 0, 2)
    this.#lengths = new Int32Array(this.memory, CONTROL_BYTES, slotCount)
    this.#bytes = new Uint8Array(this.memory, bytesAt)
    this.#free = Array.from({ length: slotCount }, (_, i) => slotCount - 1 - i)
  }

  /** -1: there was no room. */
  add(token: string): number {
    const slot = token.length > TOKEN_BYTES ? undefined : this.#free.pop()
    if (slot === undefined) return -1
    const at = slot * TOKEN_BYTES
    // By hand, since text is not encoded into shared memory; tokens are plain ASCII.
    for (let i = 0; i < token.length; i++) this.#bytes[at + i] = token.charCodeAt(i)
    Atomics.store(this.#lengths, slot, token.length)
    return slot
  }

  remove(slot: number): void {
    if (slot < 0) return
    Atomics.store(this.#lengths, slot, 0)
    this.#free.push(slot)
  }

  /** Tells the thread that the main loop keeps the leases alive itself. */
  beat(): void {
    Atomics.add(this.#control, BEAT, 1)
  }

  stop(): void {
    Atomics.store(this.#control, STOP, 1)
    Atomics.notify(this.#control, STOP)
  }
}
