import type pg from 'pg'
import { checkHistory, startBelfry, table } from '../belfry.ts'
import { runWhenDue } from '../coming-due.ts'
import { connect, readNumber } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, mustEqual, type Setting, type Subject, sized, type Workload } from '../workload.ts'
import { daily } from './recurring.ts'

const WARM_UP = 10_000
/** Loading takes minutes, so each load serves several samples. */
const SAMPLES = { quick: 2, full: 3 }
const SHARDS = 64

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
  await createModel(setting)
  await loadTimers(client, timers)
  const belfry = await startBelfry(setting)
  const fire = (queue: string, size: number, createRate: number) =>
    runWhenDue({ belfry, client, queue, count: size, createRate, jobAt: daily(queue) })
  try {
    const { createRate } = await fire('warm-up', WARM_UP, 2_000)
    const measurements: Measurement[] = []
    for (let sample = 0; sample < SAMPLES[setting.pace]; sample++) {
      const { seconds, spent } = await fire(`noop-${sample}`, count, createRate)
      measurements.push(
        { name: 'recurring_among_timers', value: count / seconds, unit: 'runs/s' },
        ...costs('recurring_among_timers', spent, count),
      )
    }
    await checkHistory(client, WARM_UP + count * SAMPLES[setting.pace])
    return measurements
  } finally {
    await belfry.stop()
    await client.end()
  }
}

/** One real job that fires in a year: what its timer looks like is Belfry's affair. */
async function createModel(setting: Setting): Promise<void> {
  const belfry = await startBelfry(setting)
  const inOneYear = new Date(Date.now() + 365 * 86_400_000).toISOString()
  await belfry.jobs.create({ queue: 'far', payload: {}, every: 'PT24H', startAt: inOneYear })
  await belfry.stop()
}

/**
 * Copies the model's timer, with ids and due times of their own. Their `jobs` rows are left out: promotion does not read
 * them, and nothing ever falls due. The index by due time is made after the load, which is many times faster.
 */
async function loadTimers(client: pg.Client, timers: number): Promise<void> {
  const perShard = Math.ceil(timers / SHARDS)
  const rebuildIndexes = await dropIndexes(client)
  const load = await copyStatement(client)
  await client.query(`create temporary table model as table ${table('timers')}`)
  for (let shard = 0; shard < SHARDS; shard++) await client.query(load, [shard, perShard])
  await rebuildIndexes()
  // So much at once would bring autovacuum and a checkpoint into the middle of the measurement.
  await client.query(`vacuum (analyze) ${table('timers')}`)
  await client.query('checkpoint')
  mustEqual('timers loaded', await readNumber(client, `select count(*) from ${table('timers')}`), perShard * SHARDS + 1)
}

/** Fills one shard: every column as in the model, but for the identity and the times. */
async function copyStatement(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    'select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped',
    [table('timers')],
  )
  // Spread over a day by a step that is prime to its length, so that neighbours by id are far apart in time.
  const dueAt = `model.due_at + (n * 7919 % 86400000) * interval '1 millisecond'`
  const own: Record<string, string> = {
    shard: '$1::int',
    // A UUIDv7 whose 12 bits after the version carry the shard, older than anything the workload creates.
    job_id: `(lpad(to_hex(1600000000000 + n), 12, '0') || '7' || lpad(to_hex($1::int), 3, '0') || '8' || substr(md5(n::text), 1, 15))::uuid`,
    due_at: dueAt,
    nominal_at: dueAt,
  }
  return `
    insert into ${table('timers')} (${rows.map(({ name }) => name).join(', ')})
    select ${rows.map(({ name }) => own[name] ?? `model.${name}`).join(', ')}
    from model cross join generate_series($1::bigint * $2::int + 1, ($1::bigint + 1) * $2::int) n`
}

async function dropIndexes(client: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index where indrelid = $1::regclass and not indisunique`,
    [table('timers')],
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  return async () => {
    await client.query(`set maintenance_work_mem = '512MB'`)
    for (const { definition } of rows) await client.query(definition)
  }
}
