import {
  CONCURRENCY,
  checkHistory,
  countAttempts,
  createAll,
  DEADLINE_MS,
  type JobInput,
  settle,
  startBelfry,
  waitForHistory,
} from '../belfry.ts'
import { connect } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { median } from '../statistics.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 20_000
const SLICE = 50_000
const KEYS = 1_000
const LIMIT = 10

/** The same no-op runs with a limit of their own on every one of them, and without. */
export const keyed: Workload = {
  name: 'keyed',
  summary: `no-op runs of ${KEYS} keys, no more than ${LIMIT} of each at a time, and the same runs without keys, in turn`,
  rounds: { quick: 2, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

type Kind = 'with' | 'without'

const LIMITS: Record<Kind, (index: number) => Partial<JobInput>> = {
  with: (index) => ({ concurrency: { key: `customer-${index % KEYS}`, limit: LIMIT } }),
  without: () => ({}),
}
/** A machine that is slower for some seconds is so for both. */
const TURNS: readonly Kind[] = ['without', 'with', 'with', 'without']

interface Drained {
  kind: Kind
  created: number
  seconds: number
  costs: Measurement[]
}

/** What is asked for is how the two compare, so each slice of one stands beside a slice of the other. */
async function measure(setting: Setting): Promise<Measurement[]> {
  const slice = sized(setting, { quick: SLICE, full: SLICE })
  const turns = setting.pace === 'quick' ? TURNS : [...TURNS, ...TURNS]
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const drain = async (kind: Kind, queue: string, count: number): Promise<Drained> => {
    const before = await countAttempts(client)
    const created = await createAll(belfry, count, (index) => ({ queue, payload: { n: 1 }, ...LIMITS[kind](index) }))
    await settle(client)
    const tally = tallyUntil(count, DEADLINE_MS)
    const meter = await startMeter(client)
    const startedAt = performance.now()
    belfry.handle(queue, async () => tally.count(), { concurrency: CONCURRENCY })
    await tally.all
    await waitForHistory(client, before + count)
    const seconds = (performance.now() - startedAt) / 1_000
    const spent = await meter()
    mustEqual('Belfry, handlers called', tally.counted, count)
    return { kind, created, seconds, costs: costs(kind === 'with' ? 'keyed' : 'keyed_without_keys', spent, count) }
  }
  try {
    await drain('without', 'warm-up', WARM_UP)
    await drain('with', 'warm-up-with-keys', WARM_UP)
    const drained: Drained[] = []
    for (const [index, kind] of turns.entries()) drained.push(await drain(kind, `noop-${index}`, slice))
    await checkHistory(client, 2 * WARM_UP + turns.length * slice)
    const of = (kind: Kind) => drained.filter((one) => one.kind === kind)
    const rate = (kind: Kind) => slice / median(of(kind).map(({ seconds }) => seconds))
    return [
      { name: 'keyed', value: rate('with'), unit: 'runs/s' },
      { name: 'keyed_without_keys', value: rate('without'), unit: 'runs/s' },
      { name: 'keyed_vs_without', value: rate('with') / rate('without'), unit: '×' },
      { name: 'keyed_create', value: median(of('with').map(({ created }) => created)), unit: 'jobs/s' },
      ...drained.flatMap((one) => one.costs),
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
