import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { BelfryError } from '../src/errors.ts'
import { type Preview, previewSchedule } from '../src/intake/preview-schedule.ts'
import type { Calendar } from '../src/job/definition.ts'
import { OVERLAP } from '../src/job/states.ts'
import { decide } from '../src/promotion/decide.ts'
import { fateOf } from '../src/promotion/overlap.ts'
import { ManualClock } from '../src/runtime/clock.ts'
import { compileSchedule } from '../src/schedule/compile-schedule.ts'
import { clockMs } from '../src/schedule/duration.ts'

/** The page says so itself. */
const NOW = Date.parse('2026-11-18T09:20:30Z')
const ZONE = 'Europe/Berlin'
const TIMES_IN_TABLES = 3
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const page = readFileSync(new URL('../../../docs/reference/schedules.md', import.meta.url), 'utf8')

// – what stands on the page –

interface Table {
  columns: string[]
  rows: string[][]
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
}

function tablesOf(text: string): Table[] {
  const tables = text.matchAll(/^(\|.*\|)\n\|[ |:-]+\|\n((?:\|.*\|\n)+)/gm)
  return [...tables].map(([, head = '', body = '']) => ({
    columns: cellsOf(head),
    rows: body.trimEnd().split('\n').map(cellsOf),
  }))
}

interface Example {
  input: Record<string, unknown>
  answer: string[]
}

function examplesOf(text: string): Example[] {
  const blocks = text.matchAll(/```json\n([^`]*)```\n```text\n([^`]*)```/g)
  return [...blocks].map(([, input = '', answer = '']) => ({
    input: JSON.parse(input) as Record<string, unknown>,
    answer: answer.trimEnd().split('\n'),
  }))
}

/** The calendar that the page writes. */
function calendarOf(text: string): Calendar {
  const [, body = '{}'] = /PUT \/v1\/calendars\/holidays[^`]*`[^`]*```json\n([^`]*)```/.exec(text) ?? []
  const { days, weekend } = JSON.parse(body) as { days: (string | { date: string })[]; weekend: string[] }
  return {
    days: days.map((day) => (typeof day === 'string' ? day : day.date)),
    weekend: weekend.map((day) => WEEKDAYS.indexOf(day)),
  }
}

// – what is answered –

const calendars = { read: async () => new Map([['holidays', calendarOf(page)]]) }

function preview(input: Record<string, unknown>): Promise<Preview> {
  return previewSchedule({ clock: new ManualClock(NOW), calendars }, 1, input)
}

/** Thu 19 Nov 09:00; the year where it is another one, seconds where there are any. */
function shortTime(local: string): string {
  const [, year, month, day, time = '', second] = /^(\d+)-(\d+)-(\d+)T(\d+:\d+):(\d+)/.exec(local) ?? []
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
  const words = date.toUTCString().slice(0, 11).replace(',', '').replace(/ 0/, ' ')
  return `${words}${year === '2026' ? '' : ` ${year}`} ${time}${second === '00' ? '' : `:${second}`}`
}

async function answerTo(column: string, input: Record<string, unknown>): Promise<string> {
  if (column === 'refused because') return `${(await refusalOf(input)).complaints[0]?.message}`
  const { understoodAs, expression, times } = await preview(input)
  if (column === 'understoodAs') return understoodAs
  if (column === 'means') return `\`${expression?.replaceAll(' | ', '`, `')}\``
  // Instants of one-offs are shown on the wall of the page.
  return times.map(({ local, utc }) => shortTime('runAt' in input || 'delay' in input ? wall(utc) : local)).join(', ')
}

function wall(utc: string): string {
  return new Date(Date.parse(utc) + 3_600_000).toISOString()
}

async function refusalOf(input: Record<string, unknown>): Promise<BelfryError> {
  const error: unknown = await preview(input).catch((thrown: unknown) => thrown)
  if (error instanceof BelfryError) return error
  throw new Error(`${JSON.stringify(input)} is not refused`)
}

async function linesOf(input: Record<string, unknown>): Promise<string[]> {
  try {
    const { understoodAs, times } = await preview(input)
    return [understoodAs, ...times.map(({ local, dst }) => (dst === undefined ? local : `${local}  ${dst}`))]
  } catch (error) {
    if (error instanceof BelfryError) return [`refused: ${error.message}`]
    throw error
  }
}

// – do they agree? –

const FORMS = ['runAt', 'delay', 'cron', 'every', 'when']
const ANSWERS = ['next times', 'means', 'refused because', 'understoodAs']

test('every expression in a table of the page fires, means or is refused as the table says', async () => {
  let asked = 0
  for (const { columns, rows } of tablesOf(page)) {
    const form = columns[0] ?? ''
    if (!FORMS.includes(form) || !columns.some((column) => ANSWERS.includes(column))) continue
    for (const row of rows) {
      const value = row[0]?.replaceAll('`', '')
      const isOnce = form === 'runAt' || form === 'delay'
      const input = { [form]: value, ...(isOnce ? {} : { timezone: ZONE, count: TIMES_IN_TABLES }) }
      const expected = await Promise.all(
        columns.map((column, index) => (ANSWERS.includes(column) ? answerTo(column, input) : row[index])),
      )
      expect(row).toEqual(expected)
      asked++
    }
  }
  expect(asked).toBeGreaterThan(100)
})

test('every example of the page is answered as it stands there', async () => {
  const examples = examplesOf(page)
  expect(examples.length).toBeGreaterThanOrEqual(25)
  for (const { input, answer } of examples) expect({ input, answer }).toEqual({ input, answer: await linesOf(input) })
})

test('the table of catch-up is what promotion decides', () => {
  const at = (time: string) => Date.parse(`2026-11-18T${time}:00Z`)
  const schedule = compileSchedule({ cron: '*/15 * * * *', timezone: 'UTC' })
  const [table] = tablesOf(page).filter(({ columns }) => columns[0] === '`catchUp`')
  for (const [policy = '', runs, skipped] of table?.rows ?? []) {
    const asked = policy === 'left out' ? {} : (JSON.parse(policy.replaceAll('`', '')) as Record<string, never>)
    const catchUp = { policy: 'latest' as const, windowMs: clockMs('PT1H'), max: 1_000, ...asked }
    const undecided = { nominalAt: at('10:15'), delayMs: 0, decidedUntil: null, remainingRuns: null }
    const decision = decide(undecided, schedule, catchUp, { at: at('11:50'), maxRuns: 100 })
    const clock = (instant: number) => new Date(instant).toISOString().slice(11, 16)
    const { from, to } = decision.skips[0] ?? { from: 0, to: 0 }
    expect(decision.runs.map(clock).join(', ') || 'none; the next is 12:00').toBe(runs)
    expect(`${clock(from)} to ${clock(schedule.latest(to - 1, from - 1) ?? 0)}`).toBe(skipped)
  }
  expect(table?.rows).toHaveLength(4)
})

/** Runs of one job that take a while, minute by minute, under one policy. */
function simulated(policy: number): { starts: string[]; skipped: string[] } {
  const clock = (minute: number) => `10:${String(minute).padStart(2, '0')}`
  const starts: string[] = []
  const skipped = new Set<number>()
  let running: { until: number }[] = []
  let waiting: number[] = []
  const start = (minute: number, nominal: number) => {
    starts.push(nominal === minute ? clock(minute) : `${clock(minute)} for ${clock(nominal)}`)
    running.push({ until: minute + 24 })
  }
  for (let minute = 0; minute < 60; minute++) {
    running = running.filter(({ until }) => until > minute)
    if (running.length === 0 && waiting.length > 0) start(minute, waiting.shift() as number)
    if (minute % 10 !== 0) continue
    const any = running.length + waiting.length > 0
    const fate = fateOf(policy, [minute], { any, others: any, waiting: waiting.length })
    if (fate.supersedes) for (const nominal of waiting.splice(0)) skipped.add(nominal)
    if (fate.cancels) running = []
    for (const nominal of fate.cancels ? fate.blocked : fate.ready) start(minute, nominal)
    if (!fate.cancels) waiting = [...waiting, ...fate.blocked]
    for (const { from } of fate.skips) skipped.add(from)
  }
  return { starts, skipped: [...skipped].sort((a, b) => a - b).map(clock) }
}

test('the table of overlaps is what each policy makes of the same times', () => {
  const [table] = tablesOf(page).filter(({ columns }) => columns[1] === 'starts before 11:00')
  const rows = table?.rows ?? []
  expect(rows.map(([policy]) => policy?.replaceAll('`', '')).sort()).toEqual(Object.keys(OVERLAP).sort())
  for (const [policy = '', starts = '', skipped = ''] of rows) {
    const found = simulated(OVERLAP[policy.replaceAll('`', '') as keyof typeof OVERLAP])
    expect([policy, found.starts.join(', ')]).toEqual([policy, starts])
    expect([policy, found.skipped.join(', ') || 'none']).toEqual([policy, skipped.replace(/;.*/, '')])
  }
})
