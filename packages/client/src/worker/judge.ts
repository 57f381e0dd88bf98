import { delayText } from './delay.ts'
import type { Completion, FailureClass } from './lease-calls.ts'
import type { RemoteRun } from './remote-run.ts'
import { cleanText, utf8Bytes } from './text.ts'
import { type VerdictKind, verdictIn } from './verdict.ts'

const MAX_ERROR_CHARACTERS = 4_096
const MAX_RESULT_BYTES = 65_536
/** As JSON writes it; behind a backslash that is itself escaped it is just a text. */
const WRITTEN_NUL = /(?<!\\)(?:\\\\)*\\u0000/

/** What a handler did. */
export type HandlerEnd = { returned: unknown } | { threw: unknown }
/** `notBegun`: nothing was done, and the run goes back. */
export type End = HandlerEnd | { notBegun: true }

/** How an attempt ends. What is given back keeps its failure count; what never began goes back into its old turn. */
export type Judgement = { completion: Completion; bytes: number } | 'release' | 'give_back'

/** Turns what a handler did into how its attempt ends: the same rules as in the library. */
export function judge(run: RemoteRun, end: End, durationMs: number): Judgement {
  const { token } = run
  if ('notBegun' in end) return run.aborted === 'canceled' ? canceledBefore(run) : 'give_back'
  const verdict = verdictIn('returned' in end ? end.returned : end.threw)
  if (verdict) return judged(verdictCompletion(token, verdict), durationMs)
  if ('returned' in end) {
    const json = resultJson(end.returned)
    if (json === null) return judged({ token, status: 'succeeded' }, durationMs)
    return judged({ token, status: 'succeeded', result: JSON.parse(json) }, durationMs, json.length)
  }
  const message = describeError(end.threw)
  if (run.aborted === 'canceled') return judged({ token, status: 'canceled', error: { message } }, durationMs)
  if (run.aborted === 'stopping' && !run.atMostOnce) return 'release'
  return judged(failed(token, run.aborted === 'timeout' ? 'timeout' : 'handler_error', message), durationMs)
}

/** The worker stops and will not wait longer. What became of work that may be done at most once nobody knows: it is lost. */
export function givenUp(run: RemoteRun, durationMs: number): Judgement {
  if (!run.hasBegun) return 'give_back'
  if (!run.atMostOnce) return 'release'
  return judged(failed(run.token, 'lost', 'the worker stopped before the handler ended'), durationMs)
}

export function canceledBefore({ token }: RemoteRun): Judgement {
  return { completion: { token, status: 'canceled', error: { message: 'canceled before it began' } }, bytes: 250 }
}

/** Its time was up, and it did not stop. */
export const stuck = ({ token }: RemoteRun, durationMs: number): Judgement =>
  judged(
    failed(token, 'timeout', 'the attempt took longer than its timeout, and did not stop when it was told to'),
    durationMs,
  )

/** For a completion that the server will not take as it is: the work is done, and that has to be said. */
export function plainCompletion({ token, status, error, retryIn, durationMs }: Completion): Completion {
  return {
    token,
    status,
    ...(error ? { error: { ...error, message: error.message.replaceAll(/[^\x20-\x7e]/g, '?') } } : {}),
    ...(retryIn === undefined ? {} : { retryIn }),
    ...(durationMs === undefined ? {} : { durationMs }),
  }
}

function judged(completion: Completion, durationMs: number, resultBytes = 0): Judgement {
  completion.durationMs = Math.max(0, Math.round(durationMs))
  return { completion, bytes: 250 + resultBytes + (completion.error?.message.length ?? 0) }
}

const failed = (token: string, failureClass: FailureClass, message: string): Completion => ({
  token,
  status: 'failed',
  error: { message, class: failureClass },
})

function verdictCompletion(token: string, verdict: VerdictKind): Completion {
  switch (verdict.kind) {
    case 'retry_in':
      return { ...failed(token, 'handler_error', clean(verdict.reason)), retryIn: delayText(verdict.delayMs) }
    case 'fail':
      return {
        token,
        status: 'failed',
        error: { message: clean(verdict.reason), class: 'handler_error', retryable: false },
      }
    case 'cancel':
      return { token, status: 'canceled', error: { message: clean(verdict.reason) } }
    case 'snooze':
      return { token, status: 'snoozed', retryIn: delayText(verdict.delayMs) }
  }
}

/** A result that cannot be stored does not undo the work that was done: it is left out. */
function resultJson(value: unknown): string | null {
  if (value === undefined) return null
  try {
    const json = JSON.stringify(value)
    return json === undefined || utf8Bytes(json) > MAX_RESULT_BYTES || WRITTEN_NUL.test(json) ? null : json
  } catch {
    return null
  }
}

/** Handlers throw whatever they like; a getter or a proxy in it may throw again. */
function describeError(error: unknown): string {
  try {
    if (error instanceof Error) return clean(error.message === '' ? error.name : `${error.name}: ${error.message}`)
    return clean(typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error)))
  } catch {
    return 'an error that cannot be shown'
  }
}

/** Never empty: a failure without a word is refused. */
const clean = (text: string): string => cleanText(String(text), MAX_ERROR_CHARACTERS) || '(no message)'
