import { classOfStatus, judgeStatus, readRetryAfter } from './classify.ts'
import type { Exchange } from './exchange.ts'
import { explainBreak, statusLine } from './explain-error.ts'
import type { HttpCall, HttpDeps, HttpEnd } from './http-call.ts'
import { type Prepared, prepare } from './prepare.ts'
import { Redaction } from './redaction.ts'
import { headerOf, MAX_BODY_BYTES, recordOf } from './response-record.ts'

const MAX_ERROR = 1_000

/** Hears once how the call ended, that it did not begin, or what broke it that should not have. */
export interface Performed {
  ended(end: HttpEnd): void
  /** Its beginning could not be said: nothing was sent. */
  unsaid(): void
  threw(error: unknown): void
}

/**
 * One attempt of an HTTP call, as a whole: filled in, authorised, signed, sent, and judged. Always ends by its deadline. A
 * target that turns down a token from memory is asked once more with a new one.
 */
export function perform(call: HttpCall, deps: HttpDeps, performed: Performed): void {
  const redaction = new Redaction()
  exchange(call, deps, redaction, performed, ({ exchange: first, bearer }) => {
    const isRefused = first.head?.statusCode === 401 && bearer !== null && first.broken === null
    if (isRefused) deps.tokens.drop(bearer.from, bearer.token)
    if (!isRefused || bearer.isFresh) return judge(call, deps, first, redaction)
    exchange(call, deps, redaction, performed, (second) => judge(call, deps, second.exchange, redaction))
    return null
  })
}

interface Begun {
  exchange: Exchange
  bearer: Prepared['bearer']
}

/** Begins an exchange, and tells what `judged` makes of it; null: something else does. */
function exchange(
  call: HttpCall,
  deps: HttpDeps,
  redaction: Redaction,
  performed: Performed,
  judged: (begun: Begun) => HttpEnd | null,
): void {
  const begun = begin(call, deps, redaction)
  begun.exchange.whenOver(() => {
    if (begun.exchange.broken === 'unsaid') {
      performed.unsaid()
      return
    }
    let end: HttpEnd | null
    try {
      end = judged(begun)
    } catch (error) {
      performed.threw(error)
      return
    }
    if (end !== null) performed.ended(end)
  })
}

function begin(call: HttpCall, deps: HttpDeps, redaction: Redaction): Begun {
  const begun: Begun = { exchange: deps.transport.open(call), bearer: null }
  try {
    const prepared = prepare(call, deps, redaction)
    if (!(prepared instanceof Promise)) send(begun, prepared, deps, redaction)
    else
      prepared.then(
        (later) => send(begun, later, deps, redaction),
        (error: Error) => begun.exchange.fail(error),
      )
  } catch (error) {
    begun.exchange.fail(error as Error)
  }
  return begun
}

function send(begun: Begun, { request, bearer }: Prepared, { transport }: HttpDeps, redaction: Redaction): void {
  begun.bearer = bearer
  if (!redaction.isEmpty) begun.exchange.keepBytes = MAX_BODY_BYTES + redaction.longestBytes
  transport.send(begun.exchange, request)
}

function judge(call: HttpCall, { clock }: HttpDeps, exchange: Exchange, redaction: Redaction): HttpEnd {
  const { head, broken, isWritten: written } = exchange
  const response = head === null ? null : recordOf(exchange, head, redaction)
  if (broken !== null || head === null || response === null) {
    const { failureClass, message, retryable, retryAfterMs } = explainBreak(exchange)
    return {
      kind: 'failed',
      failureClass,
      error: redaction.of(message).replaceAll('\0', '').slice(0, MAX_ERROR),
      retryable,
      ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
      statusCode: head?.statusCode ?? null,
      response,
      written,
    }
  }
  const { statusCode, headers } = head
  const verdict = judgeStatus(statusCode, call.target)
  if (verdict === 'success') {
    const waits = statusCode === 202 && call.callbackUrl !== undefined && asksToWait(headers)
    return waits ? { kind: 'waits', statusCode: 202, response } : { kind: 'succeeded', statusCode, response }
  }
  const retryable = verdict === 'retry'
  const retryAfterMs = retryable ? readRetryAfter(headerOf(headers, 'retry-after'), clock.now()) : undefined
  const isRedirect = statusCode >= 300 && statusCode < 400
  return {
    kind: 'failed',
    failureClass: classOfStatus(statusCode),
    error: isRedirect ? `${statusLine(statusCode)}: redirects are not followed` : statusLine(statusCode),
    retryable,
    ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
    statusCode,
    response,
    written,
  }
}

const asksToWait = (headers: readonly string[]): boolean =>
  headerOf(headers, 'belfry-callback')?.trim().toLowerCase() === 'wait'
