import type { Clock, Instant } from '../../runtime/clock.ts'
import { CallFailed, invalidTarget } from './call-failed.ts'
import { classOfStatus, judgeStatus, readRetryAfter } from './classify.ts'
import { explainBreak, statusLine } from './explain-error.ts'
import { headerOf } from './response-record.ts'
import type { Transport } from './transport.ts'

/** Everything filled in. */
export interface TokenRequest {
  tenantId: number
  tokenUrl: string
  clientId: string
  clientSecret: string
  scope?: string
  audience?: string
}

/** RFC 6749 lets clients show their secret in a header or in the body; servers insist on one or the other. */
type Style = 'header' | 'body'

interface Known {
  token: string
  until: Instant
}

const MAX_KNOWN = 10_000
const REQUEST_TIMEOUT_MS = 10_000
const EXPIRY_MARGIN_MS = 30_000
/** For servers that do not say how long a token lives. */
const DEFAULT_LIFE_S = 300
const MAX_LIFE_S = 24 * 3_600
const MAX_ANSWER_BYTES = 64 * 1_024

/** Access tokens by client credentials: asked for once by all calls that need one at the same time, kept until shortly before they expire. */
export class OAuthTokens {
  readonly #clock: Clock
  readonly #transport: Transport
  readonly #known = new Map<string, Known>()
  readonly #asked = new Map<string, Promise<string>>()
  readonly #styles = new Map<string, Style>()

  constructor(deps: { clock: Clock; transport: Transport }) {
    this.#clock = deps.clock
    this.#transport = deps.transport
  }

  /** `isFresh` says that it was not taken from memory, so that asking again would not help. */
  async get(request: TokenRequest): Promise<{ token: string; isFresh: boolean }> {
    const key = keyOf(request)
    const known = this.#known.get(key)
    if (known && known.until > this.#clock.now()) return { token: known.token, isFresh: false }
    let asked = this.#asked.get(key)
    if (asked === undefined) {
      asked = this.#ask(key, request).finally(() => this.#asked.delete(key))
      this.#asked.set(key, asked)
    }
    return { token: await asked, isFresh: true }
  }

  /** The target did not accept this token: nobody gets it any more. */
  drop(request: TokenRequest, token: string): void {
    const key = keyOf(request)
    if (this.#known.get(key)?.token === token) this.#known.delete(key)
  }

  async #ask(key: string, request: TokenRequest): Promise<string> {
    const style = this.#styles.get(request.tokenUrl) ?? 'header'
    let answer = await this.#post(request, style)
    if (answer.statusCode === 400 || answer.statusCode === 401) {
      const other = style === 'header' ? 'body' : 'header'
      const second = await this.#post(request, other)
      if (second.statusCode === 200) {
        remember(this.#styles, request.tokenUrl, other)
        answer = second
      }
    }
    if (answer.statusCode < 200 || answer.statusCode > 299) throw this.#refusal(request, answer)
    const { token, lifeS } = readToken(request, answer.text)
    const until = this.#clock.now() + lifeS * 1_000 - EXPIRY_MARGIN_MS
    if (until > this.#clock.now()) remember(this.#known, key, { token, until })
    return token
  }

  async #post(request: TokenRequest, style: Style): Promise<Answer> {
    const { origin, path, refusal } = this.#transport.urls.of(request.tokenUrl)
    if (refusal !== null) throw invalidTarget(`the token endpoint may not be called: ${refusal}`)
    const exchange = this.#transport.open({
      deadline: this.#clock.now() + REQUEST_TIMEOUT_MS,
      signal: null,
      announce: null,
    })
    exchange.keepBytes = MAX_ANSWER_BYTES
    let headers = 'content-type: application/x-www-form-urlencoded\r\naccept: application/json\r\n'
    if (style === 'header') headers += `authorization: ${basic(request)}\r\n`
    this.#transport.send(exchange, { origin, path, method: 'POST', headers, body: formOf(request, style) })
    await new Promise<void>((resolve) => exchange.whenOver(resolve))
    const { head, chunks } = exchange
    if (head === null || exchange.broken !== null) {
      const { failureClass, message, retryable } = explainBreak(exchange)
      throw new CallFailed(failureClass, `the token endpoint: ${message}`, { retryable })
    }
    const { statusCode, headers: given } = head
    return { statusCode, retryAfter: headerOf(given, 'retry-after'), text: Buffer.concat(chunks).toString() }
  }

  #refusal({ tokenUrl }: TokenRequest, { statusCode, retryAfter, text }: Answer): CallFailed {
    const word = /"error"\s*:\s*"([\w.-]{1,64})"/.exec(text)?.[1]
    const message = `the token endpoint answered ${statusLine(statusCode)}${word === undefined ? '' : ` (${word})`}`
    const retryable = judgeStatus(statusCode, { url: tokenUrl }) === 'retry'
    const afterMs = retryable ? readRetryAfter(retryAfter, this.#clock.now()) : undefined
    return new CallFailed(classOfStatus(statusCode), message, { retryable, afterMs })
  }
}

interface Answer {
  statusCode: number
  retryAfter: string | undefined
  text: string
}

function keyOf({ tenantId, tokenUrl, clientId, clientSecret, scope, audience }: TokenRequest): string {
  return JSON.stringify([tenantId, tokenUrl, clientId, clientSecret, scope, audience])
}

function basic({ clientId, clientSecret }: TokenRequest): string {
  const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

function formOf({ clientId, clientSecret, scope, audience }: TokenRequest, style: Style): string {
  const form = new URLSearchParams({ grant_type: 'client_credentials' })
  if (scope !== undefined) form.set('scope', scope)
  if (audience !== undefined) form.set('audience', audience)
  if (style === 'body') {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  }
  return form.toString()
}

function readToken({ tokenUrl }: TokenRequest, text: string): { token: string; lifeS: number } {
  const answer = parsed(text)
  const { access_token: token, expires_in: life } = answer
  // Whatever goes into a header must not be able to end it.
  if (typeof token !== 'string' || !/^[\x21-\x7e]{1,16384}$/.test(token)) {
    throw new CallFailed('network', `the token endpoint ${new URL(tokenUrl).origin} sent no access token`, {
      retryable: true,
    })
  }
  const lifeS = Number(life ?? DEFAULT_LIFE_S)
  return { token, lifeS: Number.isFinite(lifeS) ? Math.min(Math.max(0, lifeS), MAX_LIFE_S) : DEFAULT_LIFE_S }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= MAX_KNOWN) map.clear()
  map.set(key, value)
}
