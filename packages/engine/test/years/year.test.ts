import { expect, test } from 'vitest'
import { audit, type Expected } from './auditor.ts'
import { type MixedJob, MixedJobs, ZONES } from './mixed-jobs.ts'
import { Simulation } from './simulation.ts'

const JOBS = 1_000
const START = Date.UTC(2026, 0, 1) + 17_123
const END = Date.UTC(2027, 0, 1)
const SEED = 1

/** As many jobs in each zone, due at few different instants: each of these is a stop of the simulation. */
function fewStops(mixed: MixedJobs): MixedJob[] {
  const stops = new Set<number>()
  return Array.from({ length: JOBS }, (_, index) => {
    const round = Math.floor(index / ZONES.length)
    const timezone = ZONES[index % ZONES.length] as string
    for (;;) {
      const job = mixed.next(timezone === 'Australia/Lord_Howe' && round < 5 ? 'often' : 'seldom', timezone)
      if (round > 1 && job.inSpan.filter((at) => !stops.has(at)).length > job.inSpan.length / 8) continue
      for (const at of job.inSpan) stops.add(at)
      return job
    }
  })
}

test('in a year of 1,000 jobs in 20 zones every nominal time runs once', { timeout: 300_000 }, async () => {
  const mixed = new MixedJobs(SEED, { start: START, end: END })
  const jobs = fewStops(mixed).map(({ input, inSpan }) => {
    const jitter = mixed.dice.below(10) === 0 ? { jitter: '30s' } : {}
    const maxRuns = mixed.dice.below(10) === 0 ? { maxRuns: 1 + mixed.dice.below(20) } : {}
    return { input: { ...input, ...jitter, ...maxRuns, payload: 1 }, times: inSpan, ...maxRuns }
  })
  expect(new Set(jobs.map(({ input }) => input.timezone)).size).toBe(ZONES.length)
  const simulation = await Simulation.start({ start: START, seed: SEED })
  await simulation.handle()
  const ids = await simulation.create(jobs.map(({ input }) => input))
  await simulation.pass(END - 1)
  const expected = jobs.map(
    ({ input, times, maxRuns }, index): Expected => ({
      jobId: ids[index] as string,
      says: input,
      times: new Map(times.map((at) => [at, 'run'])),
      ...(maxRuns === undefined ? {} : { maxRuns }),
    }),
  )
  expect(await audit(simulation.query, expected), `seed ${SEED}`).toEqual([])
})
