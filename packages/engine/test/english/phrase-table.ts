import { readFileSync } from 'node:fs'
import type { ResolvedSpec } from '../../src/job/definition.ts'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import type { UnderstoodText } from '../../src/schedule/english/read-when.ts'
import { zoneOf } from '../../src/schedule/zone.ts'

export interface Row {
  now: number
  timezone: string
  phrase: string
  cells: string[]
}

/** The rows of a table: cells between bars, a line "## zone now" for those below it. */
export function rowsOf(file: string): Row[] {
  const rows: Row[] = []
  let place = { now: 0, timezone: 'UTC' }
  for (const line of readFileSync(new URL(file, import.meta.url), 'utf8').split('\n')) {
    const [, timezone, now] = /^## (\S+) (\S+)$/.exec(line) ?? []
    if (timezone !== undefined && now !== undefined) place = { timezone, now: Date.parse(now) }
    if (line === '' || line.startsWith('#')) continue
    const [phrase = '', ...cells] = line.split('|').map((cell) => cell.trim())
    rows.push({ ...place, phrase, cells })
  }
  return rows
}

/** What was understood, in the words of the table: expression and bounds, and the next times. */
export function cellsOf(understood: UnderstoodText, { now, timezone }: { now: number; timezone: string }): string[] {
  const wall = (at: number) => wallText(at, timezone)
  if (understood.kind === 'once') return ['once', wall(understood.at)]
  const { cron, every, startAt, endAt, maxRuns } = understood
  const expression = [
    cron?.join(' ; ') ?? every ?? '',
    ...(startAt === undefined ? [] : [`from ${wall(startAt)}`]),
    ...(endAt === undefined ? [] : [`until ${wall(endAt)}`]),
    ...(maxRuns === undefined ? [] : [`${maxRuns} times`]),
  ]
  return [expression.join(' '), timesOf(specOf(understood, timezone), now, 3).map(wall).join(', ')]
}

/** The first fire times at or after a moment. */
export function timesOf(spec: ResolvedSpec, from: number, count: number): number[] {
  const schedule = compileSchedule(spec)
  const times: number[] = []
  for (let at = schedule.next(from - 1); at !== null && times.length < count; at = schedule.next(at)) times.push(at)
  return times
}

function wallText(at: number, timezone: string): string {
  const zone = zoneOf(timezone)
  const local = zone.localOf(at)
  const text = new Date(local).toISOString().slice(0, 19).replace('T', ' ').replace(/:00$/, '')
  return zone.instantOf(local) === at ? text : `${text} again`
}

/** The schedule that a text means. */
export function specOf(understood: UnderstoodText & { kind: 'recurring' }, timezone: string): ResolvedSpec {
  const { cron, every, startAt, endAt, maxRuns } = understood
  const end = endAt === undefined ? {} : { endAt }
  if (cron !== null) return { cron, timezone, ...(startAt === undefined ? {} : { startAt }), ...end }
  const count = maxRuns === undefined ? {} : { count: maxRuns }
  return { every: every ?? '', anchor: startAt ?? 0, timezone, ...end, ...count }
}
