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
export async function perform(call: HttpCall, deps: HttpDeps): Promise<HttpEnd> {
  const redaction = new Redaction()
  const first = await exchangeOnce(call, deps, redaction)
  const { exchange, bearer } = first
  if (exchange.statusCode !== 401 || bearer === null || exchange.broken !== null)
    return judge(call, deps, exchange, redaction)
  deps.tokens.drop(bearer.from, bearer.token)
  if (bearer.isFresh) return judge(call, deps, exchange, redaction)
  const second = await exchangeOnce(call, deps, redaction)
  return judge(call, deps, second.exchange, redaction)
}

async function exchangeOnce(
  call: HttpCall,
  deps: HttpDeps,
  redaction: Redaction,
): Promise<{ exchange: Exchange; bearer: Prepared['bearer'] }> {
  const exchange = deps.transport.open(call)
  let bearer: Prepared['bearer'] = null
  prepare(call, deps, redaction).then(
    (prepared) => {
      bearer = prepared.bearer
      if (!redaction.isEmpty) exchange.keepBytes = MAX_BODY_BYTES + redaction.longestBytes
      deps.transport.send(exchange, prepared.request)
    },
    (error: Error) => exchange.fail(error),
  )
  await exchange.done
  return { exchange, bearer }
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
