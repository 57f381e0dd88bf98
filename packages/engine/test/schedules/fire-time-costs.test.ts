import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../../src/job/definition.ts'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import { FireTimes } from '../../src/schedule/fire-times.ts'
import { scheduleId } from '../../src/schedule/schedule.ts'

/** Of CPU time: a cached question takes about a tenth of a microsecond, more where others share the core. */
const CACHED_US = 5
const COMPUTED_US = 50

const start = Date.UTC(2026, 2, 1)

const specs: { id: string; spec: ResolvedSpec }[] = Array.from({ length: 2_000 }, (_, n) => {
  const timezone = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe'][n % 5] as string
  const cron = [`${n % 60} ${n % 24} * * *`, `${n % 60} * * * 1-5`, `*/${2 + (n % 9)} * * * *`, `${n % 60} 3 L * *`][
    n % 4
  ]
  const spec: ResolvedSpec = { cron: cron as string, timezone, startAt: n }
  return { id: scheduleId(spec), spec }
})

test('a million questions about 2,000 schedules cost next to nothing each', () => {
  const fireTimes = new FireTimes()
  const last = new Map<string, number>(specs.map(({ id }) => [id, start]))
  let asked = 0
  const before = process.cpuUsage()
  for (let round = 0; round < 5; round++) {
    for (const { id, spec } of specs) {
      const after = last.get(id) as number
      let next: number | null = null
      for (let job = 0; job < 100; job++) next = fireTimes.get(id, () => spec).next(after)
      asked += 100
      last.set(id, next ?? after)
    }
  }
  const micros = process.cpuUsage(before).user / asked
  expect(asked).toBe(1_000_000)
  expect(micros).toBeLessThan(CACHED_US)
})

test('what is not known yet is computed in microseconds too', () => {
  const schedules = specs.map(({ spec }) => compileSchedule(spec))
  let after = start
  const before = process.cpuUsage()
  for (let round = 0; round < 5; round++) {
    for (const schedule of schedules) schedule.next(after)
    after += 86_400_000
  }
  expect(process.cpuUsage(before).user / 10_000).toBeLessThan(COMPUTED_US)
})
