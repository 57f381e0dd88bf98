import type { CronSpec, Exclusion, IntervalSpec, ScheduleSpec } from '../../job/definition.ts'
import type { Instant } from '../../runtime/clock.ts'
import { DAY_MS, parseDuration } from '../duration.ts'
import { zoneOf } from '../zone.ts'
import { type DayFields, dayPhrase, isEveryWeekday } from './day-phrase.ts'
import { clockText, counted, listed, monthName, weekdayName } from './english-list.ts'
import { type TimePhrase, timePhrase } from './time-phrase.ts'

/** More are counted, not named: a sentence is for reading. */
const MAX_NAMED = 5

/** A recurring schedule as one English sentence, without its full stop. `readWhen` reads the usual ones back. */
export function sentenceOf(spec: ScheduleSpec): string {
  const parts = 'cron' in spec ? cronParts(spec) : intervalParts(spec)
  if (spec.endAt !== undefined) parts.push(`until ${endText(spec.endAt, spec.timezone)}`)
  if ('count' in spec && spec.count !== undefined) parts.push(counted(spec.count, 'time').replace(/^time$/, '1 time'))
  if (spec.exclude !== undefined && spec.exclude.length > 0) parts.push(`except ${excluded(spec.exclude)}`)
  if (spec.onExcluded !== undefined) parts.push('moved to the next business day instead')
  if ('dst' in spec && spec.dst?.gap !== undefined) parts.push(GAP[spec.dst.gap])
  if ('dst' in spec && spec.dst?.overlap !== undefined) parts.push(OVERLAP[spec.dst.overlap])
  return [...parts, spec.timezone].join(', ')
}

/** One moment as English words. */
export function sentenceOfOnce(at: Instant, timezone: string): string {
  const local = new Date(zoneOf(timezone).localOf(at))
  const date = `${weekdayName(local.getUTCDay())} ${local.getUTCDate()} ${monthName(local.getUTCMonth() + 1)} ${local.getUTCFullYear()}`
  const text = isFirstPass(at, timezone) ? `${date} at ${timeText(local)}` : new Date(at).toISOString()
  return `once, on ${text}, ${timezone}`
}

const GAP = {
  after: 'a time that the clocks skip fires right after the gap',
  skip: 'a time that the clocks skip does not fire',
}
const OVERLAP = {
  first: 'a time that comes twice fires the first time',
  last: 'a time that comes twice fires the second time',
  both: 'a time that comes twice fires both times',
}

function cronParts({ cron, startAt, timezone }: CronSpec): string[] {
  const phrases = merged([cron].flat().map(readExpression)).map(expressionText)
  const parts = [phrases.join('; and ')]
  if (startAt !== undefined) parts.push(`not before ${momentText(startAt, timezone)}`)
  return parts
}

interface Expression {
  time: TimePhrase
  days: DayFields
}

function readExpression(cron: string): Expression {
  const fields = cron.split(' ')
  const [second = '0', minute = '*', hour = '*', date = '*', month = '*', weekday = '*'] =
    fields.length === 6 ? fields : ['0', ...fields]
  const isUnrestricted = date === '*' && isEveryWeekday(weekday)
  return { time: timePhrase(second, minute, hour), days: { date, month, weekday: isUnrestricted ? '*' : weekday } }
}

/** Times of the same days become one list. */
function merged(expressions: readonly Expression[]): Expression[] {
  const results: { time: TimePhrase; days: DayFields }[] = []
  for (const expression of expressions) {
    const { time, days } = expression
    const same = results.find((other) => other.time.kind === 'times' && equalDays(other.days, days))
    if (time.kind === 'times' && same?.time.kind === 'times') {
      same.time = {
        kind: 'times',
        seconds: [...new Set([...same.time.seconds, ...time.seconds])].sort((a, b) => a - b),
      }
    } else results.push({ ...expression })
  }
  return results
}

function equalDays(one: DayFields, other: DayFields): boolean {
  return one.date === other.date && one.month === other.month && one.weekday === other.weekday
}

function expressionText({ time, days }: Expression): string {
  if (time.kind === 'frequency') return joined(time.text, dayPhrase(days, 'the month'))
  const when = dayPhrase(days, 'every month')
  const text = time.kind === 'odd' ? time.text : `at ${listed(time.seconds.map(secondText))}`
  const isEveryDay = days.date === '*' && days.weekday === '*' && !text.startsWith('every')
  return isEveryDay ? joined('every day', when, text) : joined(text, when)
}

function secondText(second: number): string {
  return clockText(Math.floor(second / 3_600), Math.floor((second % 3_600) / 60), second % 60)
}

function joined(...texts: string[]): string {
  return texts.filter((text) => text !== '').join(' ')
}

function intervalParts({ every, anchor, timezone }: IntervalSpec): string[] {
  return [`every ${amountText(every)}`, `counted from ${momentText(anchor, timezone)}`]
}

/** In one unit where one holds it. */
function amountText(every: string): string {
  const duration = parseDuration(every)
  const { months, days } = duration.kind === 'date' ? duration : { months: 0, days: 0 }
  const amounts: [number, string][] = [
    [months % 12 === 0 ? months / 12 : 0, 'year'],
    [months % 12 === 0 ? 0 : months, 'month'],
    [days % 7 === 0 ? days / 7 : 0, 'week'],
    [days % 7 === 0 ? 0 : days, 'day'],
    ...clockAmounts(duration.ms),
  ]
  const said = amounts.filter(([count]) => count > 0)
  const [only] = said
  if (only !== undefined && said.length === 1) return counted(...only)
  return listed(said.map(([count, noun]) => (count === 1 ? `1 ${noun}` : counted(count, noun))))
}

function clockAmounts(ms: number): [number, string][] {
  if (ms % 3_600_000 === 0) return [[ms / 3_600_000, 'hour']]
  if (ms % 60_000 === 0) return [[ms / 60_000, 'minute']]
  return [[ms / 1_000, 'second']]
}

/** `2026-12-01` at its start, else with the time; as an instant where the local time comes twice and the second is meant. */
function momentText(at: Instant, timezone: string): string {
  if (!isFirstPass(at, timezone)) return new Date(at).toISOString()
  const local = new Date(zoneOf(timezone).localOf(at))
  const date = local.toISOString().slice(0, 10)
  return local.getTime() % DAY_MS === 0 ? date : `${date} at ${timeText(local)}`
}

/** A day that ends with the schedule still belongs to it. */
function endText(at: Instant, timezone: string): string {
  const zone = zoneOf(timezone)
  const local = zone.localOf(at)
  const isMidnight = local % DAY_MS === 0 && isFirstPass(at, timezone)
  return isMidnight ? new Date(local - DAY_MS).toISOString().slice(0, 10) : momentText(at, timezone)
}

function isFirstPass(at: Instant, timezone: string): boolean {
  const zone = zoneOf(timezone)
  return zone.instantOf(zone.localOf(at)) === at
}

function timeText(local: Date): string {
  const text = local.toISOString().slice(11, 23)
  return text.endsWith(':00.000') ? text.slice(0, 5) : text.replace('.000', '')
}

function excluded(exclusions: readonly Exclusion[]): string {
  const named = exclusions.slice(0, MAX_NAMED).map(exclusionText)
  const more = exclusions.length - named.length
  return listed(more > 0 ? [...named, `${more} more exclusions`] : named)
}

function exclusionText(exclusion: Exclusion): string {
  if ('date' in exclusion) return `on ${exclusion.date}`
  if ('from' in exclusion) return `from ${exclusion.from} to ${exclusion.to}`
  if ('calendar' in exclusion) return `on days of the calendar ${JSON.stringify(exclusion.calendar)}`
  if ('cron' in exclusion) return `at times of ${JSON.stringify(exclusion.cron)}`
  return `from ${new Date(exclusion.fromAt).toISOString()} to ${new Date(exclusion.toAt).toISOString()}`
}
