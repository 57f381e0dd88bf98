import type { Complaints } from '../input/read-fields.ts'
import type { Words } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { canonicalCron } from '../schedule/cron-text.ts'
import { formatDuration } from '../schedule/duration.ts'
import type { UnderstoodText } from '../schedule/english/read-when.ts'
import { mustFireForAll } from '../schedule/firing-pattern.ts'
import { readInterval } from '../schedule/interval-schedule.ts'
import { readRepeating } from '../schedule/repeating.ts'

/** What repeats, whichever field said it, with the bounds that stand in that field itself. */
export interface Rhythm {
  field: 'cron' | 'every' | 'when'
  beat: { cron: string | readonly string[] } | { every: string }
  startAt?: Instant
  endAt?: Instant
  /** How many fire times there are, whatever becomes of them. */
  count?: number
  maxRuns?: number
  words?: Words
}

const MAX_CRONS = 20
const FALLBACK = '* * * * *'
const FALLBACK_INTERVAL = 'PT1H'

export function readCron(complaints: Complaints, value: unknown): Rhythm {
  return { field: 'cron', beat: { cron: Array.isArray(value) ? readCrons(complaints, value) : one(complaints, value) } }
}

function one(complaints: Complaints, value: unknown): string {
  const known = typeof value === 'string' ? proven.get(value) : undefined
  return known ?? complaints.read('cron', () => proveCron(value)) ?? FALLBACK
}

function readCrons(complaints: Complaints, list: readonly unknown[]): string | string[] {
  if (list.length === 0 || list.length > MAX_CRONS) {
    complaints.add('cron', `must be 1 to ${MAX_CRONS} expressions, not ${list.length}`)
    return FALLBACK
  }
  const crons = new Set<string>()
  for (const [index, value] of list.entries()) {
    const cron = complaints.read(`cron[${index}]`, () => proveCron(value))
    if (cron !== undefined) crons.add(cron)
  }
  const [first = FALLBACK, ...others] = crons
  return others.length === 0 ? first : [first, ...others]
}

/** Expressions that proved to fire, so that a batch of a million jobs proves each of its few once. */
const MAX_PROVEN = 10_000
const proven = new Map<string, string>()

function proveCron(value: unknown): string {
  const cron = canonicalCron(value)
  mustFireForAll(cron)
  if (proven.size >= MAX_PROVEN) proven.clear()
  proven.set(String(value), cron)
  return cron
}

export function readEvery(complaints: Complaints, value: unknown): Rhythm {
  if (typeof value !== 'string' || !/^R/i.test(value)) {
    const every = complaints.read('every', () => formatDuration(readInterval(value))) ?? FALLBACK_INTERVAL
    return { field: 'every', beat: { every } }
  }
  const read = () => readRepeating(value) ?? { every: formatDuration(readInterval(value)) }
  const { every, ...bounds } = complaints.read('every', read) ?? { every: FALLBACK_INTERVAL }
  return { field: 'every', beat: { every }, ...bounds }
}

/** Words that mean more than one time. Each of them may be understood, and together they may still name no day. */
export function rhythmOfWords(
  complaints: Complaints,
  text: string,
  understood: UnderstoodText & { kind: 'recurring' },
): Rhythm {
  const { cron, every, startAt, endAt, maxRuns } = understood
  complaints.read('when', () => cron?.filter((one) => !proven.has(one)).map(proveCron))
  // Where an interval starts is said in one way or another; a startAt beside it says it better.
  const says = (['startAt', 'endAt', 'maxRuns'] as const).filter(
    (bound) => understood[bound] !== undefined && !(bound === 'startAt' && every !== null),
  )
  const [first = FALLBACK, ...others] = cron ?? []
  return {
    field: 'when',
    beat: every === null ? { cron: others.length === 0 ? first : [first, ...others] } : { every },
    ...(startAt === undefined ? {} : { startAt }),
    ...(endAt === undefined ? {} : { endAt }),
    ...(maxRuns === undefined ? {} : { maxRuns }),
    words: says.length === 0 ? { text } : { text, says },
  }
}
