import { pause, type Runtime, systemRuntime } from '../runtime/runtime.ts'
import { ReceiverError } from './receiver-error.ts'

export type Report = { status: 'succeeded'; result?: unknown } | { status: 'failed'; error: string }

export interface ReportOptions {
  /** How often it is sent at most, over about a minute. 8. */
  attempts?: number
  fetch?: typeof globalThis.fetch
  signal?: AbortSignal
  runtime?: Runtime
}

const DEFAULT_ATTEMPTS = 8
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 30_000
const TIMEOUT_MS = 30_000

/**
 * Ends a run whose call was answered with `later()`. Sent again until it is answered, since saying the same twice is
 * harmless. `lease_lost`: it came too late; the run has ended, or another attempt has it. Whatever else is
 * answered is thrown as `callback_failed`.
 */
export async function report(
  callbackUrl: string,
  outcome: Report,
  { attempts = DEFAULT_ATTEMPTS, fetch = globalThis.fetch, signal, runtime = systemRuntime }: ReportOptions = {},
): Promise<'ok' | 'lease_lost'> {
  const body = JSON.stringify(outcome)
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const answer = await post(fetch, callbackUrl, body)
    if (answer.status === 200) return 'ok'
    if (answer.status === 409) return 'lease_lost'
    const mayPass = answer.status === null || answer.status >= 500 || answer.status === 429
    if (!mayPass || attempt >= attempts) {
      throw new ReceiverError('callback_failed', `the callback was answered ${answer.said}`, { cause: answer.cause })
    }
    await pause(runtime, Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)), signal)
  }
}

async function post(
  fetch: typeof globalThis.fetch,
  url: string,
  body: string,
): Promise<{ status: number | null; said: string; cause?: unknown }> {
  try {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { status: answer.status, said: `${answer.status}: ${(await answer.text()).slice(0, 500)}` }
  } catch (cause) {
    return { status: null, said: 'not at all', cause }
  }
}
