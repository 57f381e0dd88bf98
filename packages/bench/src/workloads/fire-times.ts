import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { FireTimes } from '@belfry/engine'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const EXPRESSIONS = 2_000
/** In a storm this many jobs share an expression and ask the same. */
const JOBS_PER_TIME = 100
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe']
const START = Date.UTC(2026, 2, 1)
const DAY_MS = 86_400_000

export const fireTimes: Workload = {
  name: 'fire-times',
  summary:
    'the next fire times of 2,000 cron expressions: remembered, computed, compiled, and what each takes in memory',
  rounds: { quick: 3, full: 5 },
  subjects: [{ name: 'belfry', perform: measure }],
}

function spec(n: number): { cron: string; timezone: string; startAt: number } {
  const crons = [`${n % 60} ${n % 24} * * *`, `${n % 60} * * * 1-5`, `*/${2 + (n % 9)} * * * *`, `${n % 60} 3 L * *`]
  // The start makes each of them a schedule of its own.
  return { cron: crons[n % crons.length] as string, timezone: ZONES[n % ZONES.length] as string, startAt: n }
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const specs = Array.from({ length: EXPRESSIONS }, (_, n) => spec(n))
  // What the runtime is asked about zones is remembered for all schedules of a zone.
  computed(
    new FireTimes(),
    ZONES.map((_, n) => spec(n)),
  )
  const before = usedBytes()
  const times = new FireTimes()
  const compiled = timed(EXPRESSIONS, () => {
    for (const [n, one] of specs.entries()) times.get(String(n), () => one)
  })
  const bytes = (usedBytes() - before) / EXPRESSIONS
  const asked = sized(setting, { quick: 1_000_000, full: 4_000_000 })
  return [
    { name: 'fire_time_remembered', value: remembered(specs, asked), unit: 'µs' },
    { name: 'fire_time_computed', value: computed(times, specs), unit: 'µs' },
    { name: 'schedule_compiled', value: compiled, unit: 'µs' },
    { name: 'schedule_memory', value: bytes, unit: 'bytes' },
  ]
}

/** Every time is asked for by many jobs, as after a promotion; the first of them pays for all. */
function remembered(specs: readonly ReturnType<typeof spec>[], asked: number): number {
  const times = new FireTimes()
  const rounds = Math.max(1, Math.round(asked / EXPRESSIONS / JOBS_PER_TIME))
  const last = specs.map(() => START)
  let answered = 0
  const micros = timed(rounds * EXPRESSIONS * JOBS_PER_TIME, () => {
    for (let round = 0; round < rounds; round++) {
      specs.forEach((one, n) => {
        const after = last[n] as number
        for (let job = 0; job < JOBS_PER_TIME; job++) {
          const next = times.get(String(n), () => one).next(after)
          if (next === null) continue
          answered++
          last[n] = next
        }
      })
    }
  })
  mustEqual('fire times', answered, rounds * EXPRESSIONS * JOBS_PER_TIME)
  return micros
}

/** Far apart, so that nothing is known yet. */
function computed(times: FireTimes, specs: readonly ReturnType<typeof spec>[]): number {
  const rounds = 20
  return timed(rounds * specs.length, () => {
    for (let round = 0; round < rounds; round++) {
      for (const [n, one] of specs.entries()) times.get(String(n), () => one).next(START + round * 40 * DAY_MS)
    }
  })
}

function timed(times: number, work: () => void): number {
  const startedAt = performance.now()
  work()
  return ((performance.now() - startedAt) * 1_000) / times
}

function usedBytes(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}
