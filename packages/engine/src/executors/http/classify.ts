import type { HttpTarget } from '../../job/definition.ts'
import type { FailureClass } from '../../job/states.ts'
import type { Instant } from '../../runtime/clock.ts'

export type Verdict = 'success' | 'retry' | 'failure'

const RETRIED = new Set([408, 409, 425, 429])
const MAX_RETRY_AFTER_MS = 24 * 3_600_000

/** What a status means for the run: as the job says, else as the design does. A list of codes wins over a class such as `4xx`. */
export function judgeStatus(statusCode: number, target: HttpTarget): Verdict {
  const { succeedOn, retryOn, failOn } = target
  if (succeedOn !== undefined || retryOn !== undefined || failOn !== undefined) {
    const code = String(statusCode)
    for (const pattern of [code, `${code[0]}xx`]) {
      if (failOn?.includes(pattern)) return 'failure'
      if (retryOn?.includes(pattern)) return 'retry'
      if (succeedOn?.includes(pattern)) return 'success'
    }
  }
  if (statusCode >= 200 && statusCode < 300) return 'success'
  return statusCode >= 500 || RETRIED.has(statusCode) ? 'retry' : 'failure'
}

/** There is no class for an unwanted 2xx or 3xx: whoever called chose wrongly, as with a 4xx. */
export function classOfStatus(statusCode: number): FailureClass {
  if (statusCode === 429) return 'rate_limited'
  return statusCode >= 500 ? 'http_5xx' : 'http_4xx'
}

/** `Retry-After` as seconds or as a date, at most a day; `undefined` if it says neither. */
export function readRetryAfter(value: string | undefined, now: Instant): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d{1,12}$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS)
  // An HTTP date begins with the name of a day; Date.parse would take much else for a date, too.
  if (!/^[A-Za-z]{3,9}, ?\d{2}[ -]/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.min(Math.max(0, at - now), MAX_RETRY_AFTER_MS)
}
