import { addressOf } from './addresses.ts'
import { BelfryApiError, BelfryConnectionError } from './errors.ts'
import type { Fetch, HttpAnswer, HttpRequest } from './http.ts'
import { apiErrorOf, foreignAnswer } from './problems.ts'
import { backoffMs, mayRepeat } from './repeating.ts'
import { pause, type Runtime, systemRuntime } from './runtime/runtime.ts'
import type { Operations } from './wire.ts'

export interface ConnectionOptions {
  /** Where Belfry serves, such as `https://belfry.example.com`. */
  url: string
  /** An API key. Without one only a proxy that adds it can help. */
  key?: string
  /** For whom the installation's own key acts; other keys belong to one tenant. */
  tenant?: string
  /** Makes the HTTP calls; `globalThis.fetch` unless given. */
  fetch?: Fetch
  /** How long one try may take; 30 s. A long poll has its own waiting time on top. */
  timeoutMs?: number
  /** How often a call that may be repeated is, at most; 4. */
  retries?: number
}

/** What any call can be told. */
export interface CallOptions {
  /** Ends the call, its tries and its pauses; it throws the signal's reason. */
  signal?: AbortSignal
  timeoutMs?: number
  retries?: number
  /** How the server's log shall name the request; made unless given. */
  requestId?: string
}

/** What only resources say. */
export interface CallNature extends CallOptions {
  /** Whether doing it twice is doing it once; GET, PUT and DELETE unless said. */
  isRepeatable?: boolean
  /** How long the server may wait before it answers. */
  waitMs?: number
}

export type Route = keyof Operations
type RequestOf<Of extends Route> = Omit<Operations[Of], 'response'>
type AnswerOf<Of extends Route> = Operations[Of]['response']

interface AnyRequest {
  path?: object
  query?: object
  headers?: object
  body?: unknown
}
type Read<Value> = (answer: HttpAnswer, requestId: string) => Promise<Value>

const TIMEOUT_MS = 30_000
const RETRIES = 4

/** Carries calls to the server and answers back: the only place that knows HTTP. */
export class Transport {
  readonly retries: number
  readonly #base: string
  readonly #headers: Record<string, string>
  readonly #fetch: Fetch
  readonly #hasOwnFetch: boolean
  readonly #timeoutMs: number
  readonly #runtime: Runtime

  constructor(options: ConnectionOptions, runtime = systemRuntime) {
    const { url, key, tenant, timeoutMs = TIMEOUT_MS, retries = RETRIES } = options
    this.#base = url.replace(/\/+$/, '')
    this.#headers = {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(tenant === undefined ? {} : { 'belfry-tenant': tenant }),
    }
    // Not `fetch` itself: browsers call it only as a method of the window, and it may be replaced after we were made.
    this.#fetch = options.fetch ?? ((address, request) => globalThis.fetch(address, request))
    this.#hasOwnFetch = options.fetch !== undefined
    this.#timeoutMs = timeoutMs
    this.retries = retries
    this.#runtime = runtime
  }

  /**
   * Where the server is and what says who calls, for a thread that calls it too; null if calls are made by a `fetch` that was
   * given, since that cannot go along. A getter, so that whoever prints the client does not print its key.
   */
  get address(): { url: string; headers: Readonly<Record<string, string>> } | null {
    return this.#hasOwnFetch ? null : { url: this.#base, headers: this.#headers }
  }

  /** For calls that must have an id of their own, so that repeating them is harmless. */
  uniqueId(): string {
    return this.#runtime.uniqueId()
  }

  /** Calls a route and answers its JSON. */
  call<Of extends Route>(route: Of, request: RequestOf<Of>, nature: CallNature = {}): Promise<AnswerOf<Of>> {
    return this.#perform(route, jsonRequest(request), nature, readJson) as Promise<AnswerOf<Of>>
  }

  /** Sends bytes as they are. */
  upload<Of extends Route>(route: Of, body: Uint8Array<ArrayBuffer> | Blob, type: string, nature: CallNature = {}) {
    const request = { headers: { 'content-type': type }, body }
    return this.#perform(route, request, nature, readJson) as Promise<AnswerOf<Of>>
  }

  /** Answers bytes as they are. */
  download<Of extends Route>(route: Of, request: RequestOf<Of>, nature: CallNature = {}) {
    return this.#perform(route, request, nature, readBytes)
  }

  async #perform<Value>(route: Route, request: AnyRequest, nature: CallNature, read: Read<Value>): Promise<Value> {
    const [method = '', template = ''] = route.split(' ')
    const { signal, retries = this.retries, requestId = this.uniqueId() } = nature
    const isRepeatable = nature.isRepeatable ?? ['GET', 'PUT', 'DELETE'].includes(method)
    const sent: Sent = {
      url: `${this.#base}${addressOf(template, request.path, request.query)}`,
      requestId,
      timeoutMs: (nature.timeoutMs ?? this.#timeoutMs) + (nature.waitMs ?? 0),
      request: {
        method,
        headers: { ...this.#headers, 'x-request-id': requestId, ...request.headers },
        ...(request.body === undefined ? {} : { body: request.body as NonNullable<HttpRequest['body']> }),
        redirect: 'manual',
      },
    }
    let mayBeDone = false
    for (let tries = 1; ; tries++) {
      try {
        return await this.#try(sent, signal, read)
      } catch (error) {
        // It is gone because an earlier try took it away, and only the answer was lost.
        if (mayBeDone && method === 'DELETE' && BelfryApiError.is(error, 'not_found')) return undefined as Value
        mayBeDone ||= !(error instanceof BelfryConnectionError) || error.wasSent
        if (tries > retries || !mayRepeat(error, isRepeatable)) throw error
        await pause(this.#runtime, backoffMs(error, tries, this.#runtime), signal)
      }
    }
  }

  async #try<Value>(sent: Sent, signal: AbortSignal | undefined, read: Read<Value>): Promise<Value> {
    signal?.throwIfAborted()
    const { url, request, requestId, timeoutMs } = sent
    const ending = new AbortController()
    let isTimeout = false
    const timer = this.#runtime.timer(timeoutMs, () => {
      isTimeout = true
      ending.abort()
    })
    // By hand: `AbortSignal.any` keeps what it made for as long as a long-lived signal lives.
    const onAbort = () => ending.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      const answer = await this.#fetch(url, { ...request, signal: ending.signal })
      if (answer.status >= 200 && answer.status < 300) return await read(answer, requestId)
      throw await apiErrorOf(answer, requestId, this.#runtime)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (error instanceof BelfryApiError) throw error
      const why = isTimeout ? `no answer within ${timeoutMs} ms` : wordsOf(error)
      const details = { requestId, isTimeout, wasSent: isTimeout || !isUnsent(error), cause: error }
      throw new BelfryConnectionError(`${request.method} ${url}: ${why}`, details)
    } finally {
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

interface Sent {
  url: string
  requestId: string
  timeoutMs: number
  request: Omit<HttpRequest, 'signal'>
}

function jsonRequest({ path, query, headers, body }: AnyRequest): AnyRequest {
  const beside = { ...(path ? { path } : {}), ...(query ? { query } : {}) }
  if (body === undefined) return { ...beside, headers: headers ?? {} }
  return { ...beside, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

const readJson: Read<unknown> = async (answer, requestId) => {
  const text = await answer.text()
  if (answer.status === 204) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw foreignAnswer(answer, text, requestId)
  }
}

const readBytes: Read<{ bytes: Uint8Array<ArrayBuffer>; contentType: string }> = async (answer) => ({
  bytes: new Uint8Array(await answer.arrayBuffer()),
  contentType: answer.headers.get('content-type') ?? 'application/octet-stream',
})

/** `fetch` says only that it failed; what it says why stands behind it. */
function wordsOf(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string; code?: string }; message?: string }
  return cause?.message || cause?.code || message || String(error)
}

const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']

/** Whether nobody can have got the request, because no connection was made. */
function isUnsent(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return UNSENT.includes(cause?.code ?? code ?? '')
}
