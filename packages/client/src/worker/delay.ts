import { RunError } from './run-error.ts'

const UNIT_MS = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }
const MAX_MS = 36_525 * UNIT_MS.d

const ISO = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+(?:[.,]\d+)?)H)?(?:(\d+(?:[.,]\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$/
const SHORT =
  /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/

/**
 * Milliseconds of `PT15M`, `90s`, `1h30m`. Read here and not left to the server: a handler learns at once what it wrote
 * wrong, and no batch of completions is refused for one of them.
 */
export function delayMsOf(text: unknown): number {
  const delay = typeof text === 'string' && text.length <= 64 ? text : ''
  const iso = delay === 'P' || delay.endsWith('T') ? null : ISO.exec(delay)
  const match = iso ?? (delay === '' ? null : SHORT.exec(delay))
  if (match === null) throw notADelay(text)
  const units = iso ? (['w', 'd', 'h', 'm', 's'] as const) : (['w', 'd', 'h', 'm', 's', 'ms'] as const)
  const ms = units.reduce((sum, unit, i) => sum + Number((match[i + 1] ?? '0').replace(',', '.')) * UNIT_MS[unit], 0)
  if (ms > MAX_MS) throw notADelay(text)
  return Math.round(ms)
}

export const delayText = (ms: number): string => `PT${ms / 1_000}S`

function notADelay(text: unknown): RunError {
  const shown = typeof text === 'string' ? JSON.stringify(text.slice(0, 64)) : typeof text
  return new RunError('invalid_argument', `a delay must be text such as "90s", "10m" or "PT15M", not ${shown}`)
}
