import type { Belfry } from '@belfry/engine'
import type pg from 'pg'
import { checkHistory, startBelfry, table } from '../belfry.ts'
import { runWhenDue } from '../coming-due.ts'
import { connect, readNumber } from '../database.ts'
import { type Measurement, mustEqual, type Setting, type Subject, sized, type Workload } from '../workload.ts'
import { daily } from './recurring.ts'

const WARM_UP = 10_000
/** Loading takes minutes, so each load serves several samples. */
const SAMPLES = { quick: 2, full: 3 }
const SHARDS = 64
const LOAD_CHUNK = 1_000_000

export const tenMillion: Workload = {
  name: 'ten-million',
  summary: 'the recurring workload among 100,000 timers that are not due, and among 10 million',
  rounds: { quick: 1, full: 1 },
  subjects: [among('belfry among 100k', 100_000), among('belfry among 10m', 10_000_000)],
}

function among(name: string, timers: number): Subject {
  return { name, perform: (setting) => measure(setting, sized(setting, { quick: timers, full: timers })) }
}

async function measure(setting: Setting, timers: number): Promise<Measurement[]> {
  const count = sized(setting, { quick: 100_000, full: 200_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting.databaseUrl)
  const fire = (queue: string, size: number, createRate: number) =>
    runWhenDue({ belfry, client, queue, count: size, createRate, jobAt: daily(queue) })
  try {
    await loadTimers(belfry, client, timers)
    // So much at once would bring autovacuum and a checkpoint into the middle of the measurement.
    await client.query(`vacuum (analyze) ${table('timers')}`)
    await client.query('checkpoint')
    const { createRate } = await fire('warm-up', WARM_UP, 2_000)
    const measurements: Measurement[] = []
    for (let sample = 0; sample < SAMPLES[setting.pace]; sample++) {
      const { seconds, cpuMs } = await fire(`noop-${sample}`, count, createRate)
      measurements.push(
        { name: 'recurring_among_timers', value: count / seconds, unit: 'runs/s' },
        { name: 'recurring_among_timers_node_cpu', value: (cpuMs * 1_000) / count, unit: 'µs/run' },
      )
    }
    await checkHistory(client, WARM_UP + count * SAMPLES[setting.pace])
    return measurements
  } finally {
    await belfry.stop()
    await client.end()
  }
}

/**
 * Copies the timer of one real job that fires in a year, with ids and due times of their own. Their `jobs` rows are left
 * out: promotion does not read them, and nothing ever falls due.
 */
async function loadTimers(belfry: Belfry, client: pg.Client, timers: number): Promise<void> {
  const inOneYear = Date.now() + 365 * 86_400_000
  await belfry.jobs.create({ queue: 'far', payload: {}, every: 'PT24H', startAt: new Date(inOneYear).toISOString() })
  const { rows } = await client.query<{ column: string }>(
    `select quote_ident(attname) as column from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    [table('timers')],
  )
  const columns = rows.map(({ column }) => column)
  // Spread over a day by a step that is prime to its length, so that neighbours by id are far apart in time.
  const dueAt = `model.due_at + (i::bigint * 7919 % 86400000) * interval '1 millisecond'`
  const own: Record<string, string> = {
    shard: `i % ${SHARDS}`,
    // A UUIDv7 whose 12 bits after the version carry the shard, older than anything the workload creates.
    job_id: `(lpad(to_hex(1600000000000 + i), 12, '0') || '7' || lpad(to_hex(i % ${SHARDS}), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid`,
    due_at: dueAt,
    nominal_at: dueAt,
  }
  const load = `
    insert into ${table('timers')} (${columns.join(', ')})
    select ${columns.map((column) => own[column] ?? `model.${column}`).join(', ')}
    from (select * from ${table('timers')} order by due_at limit 1) model
    cross join generate_series($1::int, $2::int) i`
  for (let from = 0; from < timers; from += LOAD_CHUNK) {
    await client.query(load, [from + 1, Math.min(timers, from + LOAD_CHUNK)])
  }
  mustEqual('timers loaded', await readNumber(client, `select count(*) from ${table('timers')}`), timers + 1)
}
