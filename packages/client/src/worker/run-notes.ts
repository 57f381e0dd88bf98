import type { HeartbeatItem, LogLevel, LogLine } from './lease-calls.ts'
import { RunError } from './run-error.ts'
import { cleanText, utf8Bytes } from './text.ts'

const MAX_CHECKPOINT_BYTES = 65_536
const MAX_LINES = 1_000
const MAX_MESSAGE_CHARACTERS = 8_192
const MAX_PROGRESS_CHARACTERS = 1_000

/**
 * What an attempt leaves at the server while it is performed: checkpoint, progress, log lines. Of checkpoint and progress
 * only the last is sent; lines are numbered, so that sending one twice stores it once.
 */
export class RunNotes {
  #checkpointJson: string | null = null
  #checkpointPending = false
  #progress: { value: number; text?: string } | null = null
  #lines: LogLine[] = []
  #lineCount = 0

  get isPending(): boolean {
    return this.#checkpointPending || this.#progress !== null || this.#lines.length > 0
  }

  get hasCheckpoint(): boolean {
    return this.#checkpointJson !== null
  }

  /** A copy: what the handler does with it does not change what was left. */
  get checkpoint(): unknown {
    return JSON.parse(this.#checkpointJson as string)
  }

  leaveCheckpoint(value: unknown): void {
    const json = JSON.stringify(value)
    if (json === undefined) throw new RunError('invalid_argument', 'a checkpoint must be a JSON value')
    if (utf8Bytes(json) > MAX_CHECKPOINT_BYTES) {
      throw new RunError('payload_too_large', `a checkpoint may have at most ${MAX_CHECKPOINT_BYTES} bytes as JSON`)
    }
    this.#checkpointJson = json
    this.#checkpointPending = true
  }

  setProgress(value: number, text?: string): void {
    if (!(value >= 0 && value <= 1)) throw new RunError('invalid_argument', 'progress is a number from 0 to 1')
    this.#progress = text === undefined ? { value } : { value, text: cleanText(String(text), MAX_PROGRESS_CHARACTERS) }
  }

  /** False: the attempt has said enough. */
  addLine(message: string, level: LogLevel, now: number): boolean {
    if (this.#lineCount >= MAX_LINES) return false
    this.#lineCount++
    const text = this.#lineCount === MAX_LINES ? 'further lines of this attempt are left out' : String(message)
    this.#lines.push({
      line: this.#lineCount,
      level,
      message: cleanText(text, MAX_MESSAGE_CHARACTERS),
      at: new Date(now).toISOString(),
    })
    return true
  }

  /** Moves what is pending, up to about `maxBytes`, into the item that will carry it; answers its size. */
  moveInto(item: HeartbeatItem, maxBytes: number): number {
    let bytes = 0
    if (this.#checkpointPending) {
      item.checkpoint = this.checkpoint
      this.#checkpointPending = false
      bytes += (this.#checkpointJson as string).length
    }
    if (this.#progress) {
      item.progress = this.#progress
      this.#progress = null
      bytes += 64 + (item.progress.text?.length ?? 0)
    }
    let taken = 0
    // At least one, so that every call gets further.
    while (taken < this.#lines.length && (taken === 0 || bytes < maxBytes)) {
      bytes += 100 + (this.#lines[taken] as LogLine).message.length
      taken++
    }
    if (taken > 0) item.logs = this.#lines.splice(0, taken)
    return bytes
  }
}
