import { BelfryError, type Complaint, type ErrorCode } from '../errors.ts'

/** Something is wrong with a job of a call because of what it waits for; `position` says which one it is. */
export class Misplaced extends BelfryError {
  readonly position: number

  constructor(position: number, { path, message, suggestion }: Complaint, code: ErrorCode = 'invalid_job') {
    super(code, path === '' || code === 'not_found' ? message : `${path}: ${message}`, {
      complaints: [suggestion === undefined ? { path, message } : { path, message, suggestion }],
    })
    this.position = position
  }
}
