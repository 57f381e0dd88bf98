import { OUTCOME } from '../job/states.ts'
import type { Ended, Finish, GoesOn } from './finish.sql.ts'

const MAX_ERROR_CHARACTERS = 4_096

/**
 * What is written of an attempt whose own end the database refuses: that it failed, and with which error; nothing of what it left, since
 * that may be what is refused. One that was to go on goes on as it was to.
 */
export function withoutWhatItLeft(finish: Finish, error: unknown): Ended | GoesOn {
  const said = `its end could not be written: ${error instanceof Error ? error.message : String(error)}`
  const left = { error: said.slice(0, MAX_ERROR_CHARACTERS).toWellFormed(), response: null }
  if (finish.kind === 'goes_on') return { ...finish, ...left }
  if (finish.kind === 'ended' && finish.outcome !== OUTCOME.succeeded) return { ...finish, ...left, result: null }
  const { fence, startedAt, finishedAt } = finish
  const statusCode = finish.kind === 'succeeded' ? null : finish.statusCode
  return {
    ...{ kind: 'ended', fence, startedAt, finishedAt, statusCode, result: null, ...left },
    ...{ outcome: OUTCOME.failed, failureClass: 'handler_error' },
  }
}
