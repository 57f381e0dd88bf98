import { expect, test } from 'vitest'
import { audit } from './auditor.ts'
import { Life, type Outage } from './life.ts'
import { MixedJobs } from './mixed-jobs.ts'
import { Simulation } from './simulation.ts'
import { SPANS } from './spans.ts'

const JOBS = 200
const HOUR = 3_600_000
const WINDOWS = { '30m': HOUR / 2, '1h': HOUR, '1d': 24 * HOUR } as const

test.each(SPANS.map(({ span, zones }, index) => ({ span, zones, seed: index + 1 })))(
  'nodes that were away for hours make up for it as each job says, and nothing is forgotten (seed $seed)',
  async ({ span, zones, seed }) => {
    const mixed = new MixedJobs(seed, span)
    const { dice } = mixed
    const jobs = Array.from({ length: JOBS }, (_, index) => {
      const rhythm = mixed.next(index % 4 === 0 ? 'often' : 'seldom', zones[index % zones.length] as string)
      const window = dice.of(['30m', '1h', '1d'] as const)
      const catchUp = { policy: dice.of(['latest', 'all', 'none'] as const), window, max: dice.of([1, 2, 1_000]) }
      return { rhythm, catchUp, input: { ...rhythm.input, catchUp, overlap: 'allow' as const, payload: 1 } }
    })
    const simulation = await Simulation.start({ start: span.start, seed })
    await simulation.handle()
    const ids = await simulation.create(jobs.map(({ input }) => input))
    const outages: Outage[] = []
    while (simulation.now() < span.end) {
      await simulation.pass(Math.min(span.end, simulation.now() + (6 + dice.below(120)) * HOUR))
      const from = simulation.now()
      simulation.standStill(dice.below(40) * HOUR + dice.below(3_600) * 1_000)
      outages.push({ from, to: simulation.now() })
    }
    await simulation.pass(simulation.now())
    const lives = jobs.map(({ rhythm, catchUp: { policy, window, max }, input }, index) => {
      const catchUp = { policy, windowMs: WINDOWS[window], max }
      return new Life(ids[index] as string, input, { from: span.start, rhythm, catchUp })
    })
    const until = simulation.now() + 1
    const found = await audit(
      simulation.query,
      lives.map((life) => life.expected(until, outages)),
    )
    expect(found, `seed ${seed}`).toEqual([])
  },
)
