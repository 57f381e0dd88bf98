import {
  type CatchUp,
  type CronSpec,
  DEFAULT_CATCH_UP,
  DEFAULT_OVERLAP,
  type IntervalSpec,
  type ScheduleSpec,
} from '../job/definition.ts'
import { CATCH_UP, type CatchUpPolicy, type Overlap } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'
import { CronSchedule } from '../schedule/cron-schedule.ts'
import { canonicalCron } from '../schedule/cron-text.ts'
import { clockMs, DAY_MS, formatDuration, MAX_DURATION_MS } from '../schedule/duration.ts'
import { parseInstant } from '../schedule/instant.ts'
import { readInterval } from '../schedule/interval-schedule.ts'
import { shown } from '../schedule/not-understood.ts'
import { zoneOf } from '../schedule/zone.ts'
import { type Complaints, readChoice, readClockMs, readInteger, readRecord } from './understand-fields.ts'

export type When =
  | { kind: 'now' }
  | { kind: 'once'; at: Instant }
  | { kind: 'recurring'; schedule: ScheduleSpec; overlap: Overlap; jitterMs: number; maxRuns: number | null }

/** `asked` is what the words said, without the clock: the same request sent later is the same request. */
export interface UnderstoodWhen {
  when: When
  asked: unknown
}

const NOW: UnderstoodWhen = { when: { kind: 'now' }, asked: null }
const KINDS = ['runAt', 'delay', 'cron', 'every'] as const
const ONLY_RECURRING = ['timezone', 'startAt', 'endAt', 'maxRuns', 'overlap', 'catchUp', 'jitter'] as const
/** The others come with the schedules' own semantics; until then they are refused rather than misread. */
const OVERLAPS = ['allow', 'skip'] as const
const CATCH_UPS = Object.keys(CATCH_UP) as CatchUpPolicy[]
const YEAR_MS = 366 * DAY_MS
const MAX_RUNS = 2_147_483_647

export function understandWhen(complaints: Complaints, job: Record<string, unknown>, now: Instant): UnderstoodWhen {
  const { runAt, delay, cron, every } = job
  const isRecurring = cron !== undefined || every !== undefined
  if (!isRecurring) complainAboutRecurring(complaints, job)
  complainAboutSeveral(complaints, job)
  if (isRecurring) return understandRecurring(complaints, job, now)
  if (runAt !== undefined) return understandRunAt(complaints, runAt, now)
  if (delay !== undefined) return understandDelay(complaints, delay, now)
  return NOW
}

function complainAboutRecurring(complaints: Complaints, job: Record<string, unknown>): void {
  for (const field of ONLY_RECURRING) {
    if (job[field] === undefined) continue
    const suggestion = field === 'startAt' ? 'runAt' : undefined
    complaints.add(field, 'only makes sense for a recurring job, one with cron or every', suggestion)
  }
}

function complainAboutSeveral(complaints: Complaints, job: Record<string, unknown>): void {
  const given = KINDS.filter((kind) => job[kind] !== undefined)
  const [first, second] = given
  if (second === undefined) return
  if (first === 'runAt' && (second === 'cron' || second === 'every')) {
    complaints.add('runAt', `cannot stand beside ${second}: startAt says when a recurring job begins`, 'startAt')
  } else {
    complaints.add(second, `cannot stand beside ${first}: give exactly one of ${KINDS.join(', ')}`)
  }
}

function understandRunAt(complaints: Complaints, value: unknown, now: Instant): UnderstoodWhen {
  const at = readInstant(complaints, 'runAt', value, now)
  if (at === undefined) return NOW
  if (at < now - YEAR_MS) complaints.add('runAt', 'lies more than a year in the past')
  return { when: { kind: 'once', at }, asked: { at } }
}

function understandDelay(complaints: Complaints, value: unknown, now: Instant): UnderstoodWhen {
  const delayMs = complaints.read('delay', () => clockMs(value))
  if (delayMs === undefined) return NOW
  return { when: delayMs === 0 ? NOW.when : { kind: 'once', at: now + delayMs }, asked: { delayMs } }
}

function understandRecurring(complaints: Complaints, job: Record<string, unknown>, now: Instant): UnderstoodWhen {
  const { overlap, jitter, maxRuns } = job
  const timezone = readZone(complaints, job.timezone)
  const startAt = job.startAt === undefined ? undefined : readInstant(complaints, 'startAt', job.startAt, now)
  const endAt = job.endAt === undefined ? undefined : readInstant(complaints, 'endAt', job.endAt, now)
  const bounds = {
    ...(endAt === undefined ? {} : { endAt }),
    ...withCatchUp(complaints, job.catchUp),
  }
  const schedule =
    job.cron === undefined
      ? readEvery(complaints, job.every, { timezone, anchor: startAt ?? now, ...bounds })
      : readCron(complaints, job.cron, { timezone, ...(startAt === undefined ? {} : { startAt }), ...bounds })
  const when: When = {
    kind: 'recurring',
    schedule,
    overlap: overlap === undefined ? DEFAULT_OVERLAP : (readChoice(complaints, 'overlap', overlap, OVERLAPS) ?? 'skip'),
    jitterMs: jitter === undefined ? 0 : (readClockMs(complaints, 'jitter', jitter, 0, DAY_MS) ?? 0),
    maxRuns: maxRuns === undefined ? null : (readInteger(complaints, 'maxRuns', maxRuns, 1, MAX_RUNS) ?? null),
  }
  if (endAt !== undefined && complaints.list.length === 0) complainAboutEnd(complaints, schedule, startAt, endAt, now)
  const asked = 'anchor' in schedule ? { ...schedule, anchor: startAt ?? null } : schedule
  return { when, asked }
}

function complainAboutEnd(
  complaints: Complaints,
  schedule: ScheduleSpec,
  startAt: Instant | undefined,
  endAt: Instant,
  now: Instant,
): void {
  if (endAt <= now) complaints.add('endAt', 'lies in the past')
  else if (startAt !== undefined && endAt <= startAt) complaints.add('endAt', 'must be later than startAt')
  else if (compileSchedule(schedule).next(now) === null) complaints.add('endAt', 'comes before the first fire time')
}

function readInstant(complaints: Complaints, path: string, value: unknown, now: Instant): Instant | undefined {
  const at = complaints.read(path, () => parseInstant(value))
  if (at === undefined) return undefined
  if (at > now + MAX_DURATION_MS) return complaints.add(path, 'lies more than 100 years ahead')
  return at < 0 ? complaints.add(path, 'lies before 1970') : at
}

function readZone(complaints: Complaints, value: unknown): string {
  if (value === undefined) return 'UTC'
  if (typeof value !== 'string') {
    complaints.add('timezone', `must be a text such as "Europe/Berlin", not ${shown(value)}`)
    return 'UTC'
  }
  return complaints.read('timezone', () => zoneOf(value).name) ?? 'UTC'
}

/** Expressions that proved to fire, so that a batch of a million jobs proves each of its few once. */
const MAX_PROVEN = 10_000
const proven = new Map<string, string>()

function readCron(complaints: Complaints, value: unknown, rest: Omit<CronSpec, 'cron'>): CronSpec {
  const known = typeof value === 'string' ? proven.get(value) : undefined
  const cron = known ?? complaints.read('cron', () => proveCron(value)) ?? '* * * * *'
  const { timezone, startAt, ...bounds } = rest
  return { cron, timezone, ...(startAt === undefined ? {} : { startAt }), ...bounds }
}

function proveCron(value: unknown): string {
  const cron = canonicalCron(value)
  new CronSchedule({ cron, timezone: 'UTC' })
  if (proven.size >= MAX_PROVEN) proven.clear()
  proven.set(String(value), cron)
  return cron
}

function readEvery(complaints: Complaints, value: unknown, rest: Omit<IntervalSpec, 'every'>): IntervalSpec {
  const every = complaints.read('every', () => formatDuration(readInterval(value))) ?? 'PT1H'
  return { every, ...rest }
}

function withCatchUp(complaints: Complaints, value: unknown): { catchUp?: CatchUp } {
  if (value === undefined) return {}
  const record = readRecord(complaints, 'catchUp', value, ['policy', 'window', 'max'])
  if (record === undefined) return {}
  const { policy, window, max } = record
  const usual = DEFAULT_CATCH_UP
  const catchUp: CatchUp = {
    policy:
      policy === undefined ? usual.policy : (readChoice(complaints, 'catchUp.policy', policy, CATCH_UPS) ?? 'latest'),
    windowMs:
      window === undefined
        ? usual.windowMs
        : (readClockMs(complaints, 'catchUp.window', window, 0, YEAR_MS) ?? usual.windowMs),
    max: max === undefined ? usual.max : (readInteger(complaints, 'catchUp.max', max, 1, 100_000) ?? usual.max),
  }
  const isUsual = catchUp.policy === usual.policy && catchUp.windowMs === usual.windowMs && catchUp.max === usual.max
  return isUsual ? {} : { catchUp }
}
