import { type ApiErrorCode, BelfryApiError } from './errors.ts'
import type { HttpAnswer } from './http.ts'
import type { Runtime } from './runtime/runtime.ts'
import type { Problem } from './wire.ts'

const EXCERPT = 200

/** The error that an answer tells of: a problem of Belfry's, or whatever else stands between it and us. */
export async function apiErrorOf(answer: HttpAnswer, sentId: string, runtime: Runtime): Promise<BelfryApiError> {
  const text = await answer.text()
  const problem = problemIn(text)
  const { status } = answer
  return new BelfryApiError({
    code: (problem?.code ?? 'unknown_error') as ApiErrorCode,
    status,
    title: problem?.title ?? 'The answer is not from Belfry',
    detail: problem?.detail ?? `status ${status}: ${text.slice(0, EXCERPT) || 'no body'}`,
    errors: problem?.errors,
    requestId: answer.headers.get('x-request-id') ?? sentId,
    retryAfterMs: retryAfterMs(answer.headers.get('retry-after'), runtime.now()),
  })
}

/** An answer that says that all is well, in words that are not Belfry's. */
export function foreignAnswer({ status, headers }: HttpAnswer, text: string, sentId: string): BelfryApiError {
  return new BelfryApiError({
    code: 'unknown_error',
    status,
    title: 'The answer is not from Belfry',
    detail: `is this the address of a Belfry server? It answered: ${text.slice(0, EXCERPT)}`,
    requestId: headers.get('x-request-id') ?? sentId,
    retryAfterMs: null,
  })
}

function problemIn(text: string): Problem | null {
  try {
    const value = JSON.parse(text) as Partial<Problem> | null
    return typeof value?.code === 'string' && typeof value.detail === 'string' ? (value as Problem) : null
  } catch {
    return null
  }
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - now
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}
