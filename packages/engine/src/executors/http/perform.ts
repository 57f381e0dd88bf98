import { classOfStatus, judgeStatus, readRetryAfter } from './classify.ts'
import type { Exchange } from './exchange.ts'
import { explainBreak, statusLine } from './explain-error.ts'
import type { HttpCall, HttpDeps, HttpEnd } from './http-call.ts'
import { type Prepared, prepare } from './prepare.ts'
import { Redaction } from './redaction.ts'
import { headerOf, MAX_BODY_BYTES, recordOf } from './response-record.ts'

const MAX_ERROR = 1_000

/**
 * One attempt of an HTTP call, as a whole: filled in, authorised, signed, sent, and judged. Always ends by its deadline,
 * and never throws. A target that turns down a token from memory is asked once more with a new one.
 */
export function perform(call: HttpCall, deps: HttpDeps): Promise<HttpEnd> {
  const redaction = new Redaction()
  return exchanged(call, deps, redaction, ({ exchange, bearer }) => {
    if (exchange.statusCode === 401 && bearer !== null && exchange.broken === null) {
      deps.tokens.drop(bearer.from, bearer.token)
      if (!bearer.isFresh)
        return exchanged(call, deps, redaction, (second) => judge(call, deps, second.exchange, redaction))
    }
    return judge(call, deps, exchange, redaction)
  })
}

interface Begun {
  exchange: Exchange
  bearer: Prepared['bearer']
}

/** Begins an exchange, and answers what `ended` makes of it. */
function exchanged(
  call: HttpCall,
  deps: HttpDeps,
  redaction: Redaction,
  ended: (begun: Begun) => HttpEnd | Promise<HttpEnd>,
): Promise<HttpEnd> {
  return new Promise((resolve, reject) => {
    const begun = begin(call, deps, redaction)
    begun.exchange.whenOver(() => {
      try {
        resolve(ended(begun))
      } catch (error) {
        reject(error)
      }
    })
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
  const { statusCode, broken, isWritten: written } = exchange
  const response = statusCode === 0 ? null : recordOf(exchange, redaction)
  if (broken !== null || response === null) {
    const { failureClass, message, retryable, retryAfterMs } = explainBreak(exchange)
    return {
      kind: 'failed',
      failureClass,
      error: redaction.of(message).replaceAll('\0', '').slice(0, MAX_ERROR),
      retryable,
      ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
      statusCode: statusCode === 0 ? null : statusCode,
      response,
      written,
    }
  }
  const verdict = judgeStatus(statusCode, call.target)
  if (verdict === 'success') {
    const waits = statusCode === 202 && call.callbackUrl !== undefined && asksToWait(exchange)
    return waits ? { kind: 'waits', statusCode: 202, response } : { kind: 'succeeded', statusCode, response }
  }
  const retryable = verdict === 'retry'
  const retryAfterMs = retryable ? readRetryAfter(headerOf(exchange.headers, 'retry-after'), clock.now()) : undefined
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

const asksToWait = ({ headers }: Exchange): boolean =>
  headerOf(headers, 'belfry-callback')?.trim().toLowerCase() === 'wait'
