import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError } from '../../src/errors.ts'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import { canonicalCron } from '../../src/schedule/cron-text.ts'
import { formatDuration, parseDuration } from '../../src/schedule/duration.ts'
import { readWhen, type UnderstoodText } from '../../src/schedule/english/read-when.ts'
import { KNOWN_WORDS } from '../../src/schedule/english/vocabulary.ts'
import { rowsOf, specOf } from './phrase-table.ts'

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia', 'Antarctica/Troll']

const places = fc.record({
  timezone: fc.constantFrom(...ZONES),
  now: fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2060, 0, 1) }),
})

/** Understood or refused with words: nothing else may happen. */
function readOrRefuse(text: string, at: { now: number; timezone: string }): UnderstoodText | null {
  try {
    return readWhen(text, at)
  } catch (error) {
    if (error instanceof BelfryError && error.code === 'invalid_argument' && error.message.length < 500) return null
    throw error
  }
}

/** Whatever was understood can be scheduled, and is not past. */
function expectSound(understood: UnderstoodText, { now, timezone }: { now: number; timezone: string }): void {
  if (understood.kind === 'once') {
    expect(Number.isInteger(understood.at)).toBe(true)
    expect(understood.at).toBeGreaterThanOrEqual(now)
    return
  }
  const { cron, every, startAt, endAt, maxRuns } = understood
  expect([cron, every].filter((one) => one !== null)).toHaveLength(1)
  if (cron !== null) {
    expect(cron.length).toBeGreaterThan(0)
    expect(cron.length).toBeLessThanOrEqual(20)
    expect(cron.map(canonicalCron)).toEqual(cron)
  } else {
    expect(formatDuration(parseDuration(every))).toBe(every)
    expect(Number.isInteger(startAt)).toBe(true)
  }
  if (endAt !== undefined) expect(endAt).toBeGreaterThan(Math.max(now, startAt ?? now))
  if (maxRuns !== undefined) expect(maxRuns).toBeGreaterThanOrEqual(1)
  const first = compileSchedule(specOf(understood, timezone)).next(now - 1)
  if (endAt === undefined && maxRuns === undefined) expect(first).not.toBeNull()
}

const things = [
  '9',
  '17:30',
  '2026-12-24',
  '0',
  '31',
  '2028',
  '1st',
  '15th',
  '-',
  ',',
  ';',
  '.',
  '@',
  'Europe/Berlin',
  '9am',
]
const words = fc.constantFrom(...KNOWN_WORDS, ...things, 'end', 'ago', 'biweekly', 'xyzzy')
const salads = fc.array(words, { minLength: 1, maxLength: 12 }).map((list) => list.join(' ').slice(0, 200))

test('a salad of words is understood soundly or refused with words', () => {
  fc.assert(
    fc.property(salads, places, (text, at) => {
      const understood = readOrRefuse(text, at)
      if (understood !== null) expectSound(understood, at)
    }),
    { numRuns: 2_000 },
  )
})

const known = rowsOf('phrases.txt').map(({ phrase }) => phrase.split(' '))

test('phrases with words lost, doubled, swapped or mixed are understood soundly or refused with words', () => {
  const mixed = fc
    .tuple(fc.constantFrom(...known), fc.constantFrom(...known), fc.nat(20), fc.nat(20), words)
    .map(([one, other, cut, from, word]) => [...one.slice(0, cut), word, ...other.slice(from)].join(' ').slice(0, 200))
  fc.assert(
    fc.property(mixed, places, (text, at) => {
      const understood = readOrRefuse(text, at)
      if (understood !== null) expectSound(understood, at)
    }),
    { numRuns: 1_500 },
  )
})

test('any text at all is understood or refused with words', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      readOrRefuse(text, { now: 0, timezone: 'UTC' })
    }),
    { numRuns: 1_000 },
  )
})

test('the longest texts take no longer than a blink', () => {
  const longest = [
    'every '.repeat(33),
    'monday, '.repeat(25),
    '1h '.repeat(66),
    `every day at ${'9:00, '.repeat(31)}`,
    '1st and '.repeat(25),
    'a.b'.repeat(66),
    '1'.repeat(200),
    `a/${'b/'.repeat(99)}`,
    'every 1 second between 00:00 and 23:59',
    'every 1 minutes between 00:01 and 00:00',
  ]
  const before = process.cpuUsage()
  for (const text of longest) readOrRefuse(text.slice(0, 200), { now: 0, timezone: 'Europe/Berlin' })
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000)
})

test('what starts within a second loses no time of its own', () => {
  const at = { now: Date.parse('2026-11-18T09:20:30.500Z'), timezone: 'UTC' }
  const first = (text: string) => {
    const understood = readWhen(text, at)
    if (understood.kind === 'once') return understood.at
    return compileSchedule(specOf(understood, 'UTC')).next(at.now - 1)
  }
  expect(first('every 3 days starting now')).toBe(at.now)
  expect(first('every 90 minutes')).toBe(at.now)
  expect(first('every day starting in 30 minutes')).toBe(Date.parse('2026-11-18T09:50:31Z'))
  expect(first('every month starting now')).toBe(Date.parse('2026-11-18T09:20:31Z'))
  expect(first('in 10 minutes')).toBe(at.now + 600_000)
})
