import { createAll, startBelfry, table } from '../belfry.ts'
import { connect } from '../database.ts'
import { type Measurement, mustEqual, type Setting, type Workload } from '../workload.ts'

const PER_SECOND = 200
const BURST = 50
const SECONDS = { quick: 6, full: 20 }
const CONCURRENCY = 200

/** Two nodes serve one key that has a rate and always more to do than it allows. */
export const rateLimit: Workload = {
  name: 'rate-limit',
  summary: `runs of one key that starts ${PER_SECOND} a second, ${BURST} at once at most, on two nodes: observed rate and burst`,
  rounds: { quick: 1, full: 2 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const seconds = SECONDS[setting.pace]
  const runs = PER_SECOND * (seconds + 4)
  const nodes = [await startBelfry(setting), await startBelfry(setting)] as const
  const client = await connect(setting.databaseUrl)
  try {
    const limit = { key: 'partner', limit: PER_SECOND, period: '1s', burst: BURST }
    await createAll(nodes[0], runs, () => ({ queue: 'calls', payload: 1, rateLimit: limit }))
    for (const node of nodes) node.handle('calls', async () => {}, { concurrency: CONCURRENCY })
    await new Promise((resolve) => setTimeout(resolve, (seconds + 2) * 1_000))
    // What counts is when they were leased: handlers begin a little later, as busy as the machine is.
    const { rows } = await client.query<{ at: number }>(
      `select (extract(epoch from leased_at) * 1000)::float8 as at from ${table('attempts')} order by leased_at`,
    )
    const starts = rows.map(({ at }) => at)
    const [first] = starts
    mustEqual('the rate limit, that anything started', first === undefined ? 0 : 1, 1)
    const from = (first as number) + 1_000
    const counted = starts.filter((at) => at >= from && at < from + (seconds - 1) * 1_000).length
    const rate = counted / (seconds - 1)
    return [
      { name: 'rate_limit_observed', value: rate, unit: 'runs/s' },
      { name: 'rate_limit_off_by', value: (Math.abs(rate - PER_SECOND) / PER_SECOND) * 100, unit: '%' },
      { name: 'rate_limit_burst', value: largestBurst(starts), unit: `runs ahead, of ${BURST}` },
    ]
  } finally {
    await client.end()
    for (const node of nodes) await node.stop()
  }
}

/** How many more than the rate gives have ever started, over any time. */
function largestBurst(starts: readonly number[]): number {
  let level = 0
  let most = 0
  let last = starts[0] ?? 0
  for (const at of [...starts].sort((a, b) => a - b)) {
    level = Math.max(0, level - ((at - last) / 1_000) * PER_SECOND) + 1
    most = Math.max(most, level)
    last = at
  }
  return most
}
