import { type Complaints, isRecord, readChoice, readRecord, readWord } from '../input/read-fields.ts'
import type { DstPolicy, Exclusion, ScheduleSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { parseDay } from '../schedule/calendar-day.ts'
import { canonicalCron } from '../schedule/cron-text.ts'
import { notUnderstood, shown } from '../schedule/not-understood.ts'
import { readInstant } from './understand-bounds.ts'

const MAX_EXCLUSIONS = 100
const MAX_CALENDARS = 10
const DATE = /^\d{4}-\d\d-\d\d$/
const FIELDS = ['from', 'to', 'cron', 'calendar'] as const
const FORMS = '"2026-12-25", { from, to }, { cron } or { calendar }'
const ON_EXCLUDED = ['skip', 'next_business_day'] as const
const GAPS = ['after', 'skip'] as const
const OVERLAPS = ['first', 'last', 'both'] as const

/** Days and times at which a recurring job does not fire, and what becomes of those. */
export function addExclusions(
  complaints: Complaints,
  schedule: ScheduleSpec,
  { exclude, onExcluded }: Record<string, unknown>,
  now: Instant,
): void {
  const list = exclude === undefined ? [] : readList(complaints, exclude, now)
  const choice = onExcluded === undefined ? 'skip' : readChoice(complaints, 'onExcluded', onExcluded, ON_EXCLUDED)
  if (exclude === undefined) complaints.add('onExcluded', 'has no meaning without exclude')
  if (list.length === 0) return
  schedule.exclude = list
  if (choice === 'next_business_day') schedule.onExcluded = choice
}

function readList(complaints: Complaints, value: unknown, now: Instant): Exclusion[] {
  if (!Array.isArray(value)) {
    const suggestion = typeof value === 'string' && DATE.test(value) ? `["${value}"]` : undefined
    complaints.add('exclude', `must be a list of ${FORMS}, not ${shown(value)}`, suggestion)
    return []
  }
  if (value.length > MAX_EXCLUSIONS) {
    const hint = 'a calendar may hold more days'
    complaints.add('exclude', `must be at most ${MAX_EXCLUSIONS}, not ${value.length}: ${hint}`)
    return []
  }
  const list: Exclusion[] = []
  for (const [index, item] of value.entries()) {
    const exclusion = readOne(complaints, `exclude[${index}]`, item, now)
    if (exclusion !== undefined) list.push(exclusion)
  }
  const calendars = list.filter((one) => 'calendar' in one).length
  if (calendars > MAX_CALENDARS) {
    complaints.add('exclude', `must name at most ${MAX_CALENDARS} calendars, not ${calendars}: one may hold all days`)
  }
  return list
}

function readOne(complaints: Complaints, path: string, value: unknown, now: Instant): Exclusion | undefined {
  if (typeof value === 'string') {
    const date = complaints.read(path, () => readDate(value))
    return date === undefined ? undefined : { date }
  }
  if (!isRecord(value)) return complaints.add(path, `must be ${FORMS}, not ${shown(value)}`)
  const { from, to, cron, calendar } = readRecord(complaints, path, value, FIELDS) as Record<string, unknown>
  const isRange = from !== undefined || to !== undefined
  const forms = [isRange, cron !== undefined, calendar !== undefined].filter(Boolean)
  if (forms.length !== 1) return complaints.add(path, `must be exactly one of ${FORMS}`)
  if (isRange) return readRange(complaints, path, from, to, now)
  if (cron !== undefined) {
    const text = complaints.read(`${path}.cron`, () => fixedCron(cron))
    return text === undefined ? undefined : { cron: text }
  }
  const name = readWord(complaints, `${path}.calendar`, calendar)
  return name === undefined ? undefined : { calendar: name }
}

/** Days if both are dates, and then the last one counts; else instants, half-open. */
function readRange(
  complaints: Complaints,
  path: string,
  from: unknown,
  to: unknown,
  now: Instant,
): Exclusion | undefined {
  if (from === undefined) return complaints.add(`${path}.from`, 'is missing: a range has from and to')
  if (to === undefined) return complaints.add(`${path}.to`, 'is missing: a range has from and to')
  const areDates = [from, to].map((end) => typeof end === 'string' && DATE.test(end))
  if (areDates[0] !== areDates[1]) {
    return complaints.add(`${path}.to`, 'must be a date if from is one, and an instant if from is one')
  }
  if (!areDates[0]) {
    const fromAt = readInstant(complaints, `${path}.from`, from, now)
    const toAt = readInstant(complaints, `${path}.to`, to, now)
    if (fromAt === undefined || toAt === undefined) return undefined
    return toAt > fromAt ? { fromAt, toAt } : complaints.add(`${path}.to`, 'must be later than from')
  }
  const first = complaints.read(`${path}.from`, () => readDate(from as string))
  const last = complaints.read(`${path}.to`, () => readDate(to as string))
  if (first === undefined || last === undefined) return undefined
  return last >= first ? { from: first, to: last } : complaints.add(`${path}.to`, 'must not be earlier than from')
}

function readDate(text: string): string {
  if (!DATE.test(text)) {
    const [date] = /^\d{4}-\d\d-\d\d(?=T)/.exec(text) ?? []
    throw notUnderstood(`${shown(text)} is not a date such as "2026-12-25"`, date)
  }
  // Whether there is such a day.
  parseDay(text)
  return text
}

function fixedCron(value: unknown): string {
  const cron = canonicalCron(value)
  if (cron.includes('H')) throw notUnderstood('cannot hold H: what is left out is the same for all jobs')
  // Second 0 alone is not the whole minute, which five fields leave out.
  const isSecond = String(value).trim().split(/\s+/).length === 6
  return isSecond && cron.split(' ').length === 5 ? `0 ${cron}` : cron
}

/** What a change of the clocks does to a cron. */
export function addDst(complaints: Complaints, schedule: ScheduleSpec, value: unknown): void {
  const record = readRecord(complaints, 'dst', value, ['gap', 'overlap'])
  if (record === undefined) return
  const gap = record.gap === undefined ? undefined : readChoice(complaints, 'dst.gap', record.gap, GAPS)
  const overlap =
    record.overlap === undefined ? undefined : readChoice(complaints, 'dst.overlap', record.overlap, OVERLAPS)
  if (gap === undefined && overlap === undefined) return
  const dst: DstPolicy = { ...(gap === undefined ? {} : { gap }), ...(overlap === undefined ? {} : { overlap }) }
  if ('cron' in schedule) schedule.dst = dst
  else complaints.add('dst', 'only makes sense beside cron: an interval is not bound to the hours of a day')
}
