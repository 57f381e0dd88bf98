import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { audit } from './auditor.ts'
import { Life, type Outage } from './life.ts'
import { type MixedJob, MixedJobs } from './mixed-jobs.ts'
import { Simulation } from './simulation.ts'
import { SPANS } from './spans.ts'

const JOBS = 200
const EDITS_AT_ONCE = 8
const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** What a new schedule does not say is taken away. */
const NOTHING = { exclude: null, dst: null } as unknown as Partial<JobInput>

test.each(SPANS.map(({ span, zones }, index) => ({ span, zones, seed: index + 11 })))(
  'whatever is changed, paused, resumed and triggered meanwhile, nothing is lost and nothing runs twice (seed $seed)',
  async ({ span, zones, seed }) => {
    const mixed = new MixedJobs(seed, span)
    const { dice } = mixed
    /** One without an end: a job that is used up cannot be changed. */
    const next = (): MixedJob => {
      for (;;) {
        const job = mixed.next(dice.below(4) === 0 ? 'often' : 'seldom', dice.of(zones))
        if (job.input.endAt === undefined) return job
      }
    }
    const jobs = Array.from({ length: JOBS }, next)
    const simulation = await Simulation.start({ start: span.start, seed })
    await simulation.handle()
    const ids = await simulation.create(jobs.map(({ input }) => ({ ...input, payload: 1 })))
    const lives = jobs.map(
      (rhythm, index) => new Life(ids[index] as string, rhythm.input, { from: span.start, rhythm, catchUp: null }),
    )
    const outages: Outage[] = []

    const edit = async (life: Life): Promise<void> => {
      const at = simulation.now()
      const { jobs: api } = simulation
      const missed = dice.of(['skip', 'catch_up'] as const)
      switch (dice.below(6)) {
        case 0: {
          if (life.isPaused) return
          const rhythm = next()
          await api.update(life.jobId, { ...NOTHING, ...rhythm.input })
          return life.follow(at, rhythm)
        }
        case 1:
          return void (await api.update(life.jobId, { jitter: `${1 + dice.below(40)}s` }))
        case 2:
          return void (await api.update(life.jobId, {
            overlap: dice.of(['allow', 'skip', 'buffer_one', 'buffer_all']),
          }))
        case 3:
          if (!life.isPaused) {
            await api.pause(life.jobId)
            life.pause(at)
          }
          return
        case 4:
          if (life.isPaused) {
            await api.resume(life.jobId, { missed })
            life.resume(at, missed)
          }
          return
        default:
          return void (await api.trigger(life.jobId, { overlap: 'allow' }))
      }
    }

    while (simulation.now() < span.end) {
      await simulation.pass(simulation.now() + dice.below(12 * 60) * MINUTE + 1)
      if (dice.below(4) === 0) {
        const from = simulation.now()
        simulation.standStill(dice.below(10 * 60) * MINUTE)
        outages.push({ from, to: simulation.now() })
      }
      // An edit after an outage comes before anybody has decided what fell into it.
      for (let i = 0; i < EDITS_AT_ONCE; i++) await edit(dice.of(lives))
      await simulation.pass(simulation.now())
      if (dice.below(3) === 0) {
        // The clock goes back to before what has just been decided.
        const due = await simulation.nextDue()
        await simulation.pass(due + 45_000)
        simulation.standStill(-90_000)
        await simulation.step()
        await simulation.pass(due + 2 * MINUTE)
      }
    }
    for (const life of lives)
      if (life.isPaused) {
        await simulation.jobs.resume(life.jobId)
        life.resume(simulation.now(), 'skip')
      }
    await simulation.pass(simulation.now() + HOUR)
    const until = simulation.now() + 1
    const found = await audit(
      simulation.query,
      lives.map((life) => life.expected(until, outages)),
    )
    expect(found, `seed ${seed}`).toEqual([])
  },
)
