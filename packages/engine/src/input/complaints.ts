import { BelfryError, type Complaint, type ErrorCode } from '../errors.ts'

/** Nobody reads more, and an input with a million mistakes must not become a larger answer. */
const MAX_COMPLAINTS = 100

/** Everything that is wrong with one input: it is collected, so that one answer names it all. */
export class Complaints {
  readonly list: Complaint[] = []

  add(path: string, message: string, suggestion?: string): undefined {
    if (this.list.length >= MAX_COMPLAINTS) return
    this.list.push(suggestion === undefined ? { path, message } : { path, message, suggestion })
  }

  get isFull(): boolean {
    return this.list.length >= MAX_COMPLAINTS
  }

  /** Runs a reader that throws what it cannot understand, and files that under the path. */
  read<T>(path: string, reader: () => T): T | undefined {
    try {
      return reader()
    } catch (error) {
      if (!(error instanceof BelfryError)) throw error
      return this.add(path, error.message, error.complaints[0]?.suggestion)
    }
  }

  error(code: ErrorCode): BelfryError {
    const [first] = this.list
    const others = this.list.length - 1
    const place = first?.path ? `${first.path}: ` : ''
    const hint = first?.suggestion === undefined ? '' : `; did you mean ${first.suggestion}?`
    const more = others > 0 ? ` (and ${others} more)` : ''
    return new BelfryError(code, `${place}${first?.message}${hint}${more}`, { complaints: this.list })
  }
}
