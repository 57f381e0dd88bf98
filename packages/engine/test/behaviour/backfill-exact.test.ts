import { expect, test } from 'vitest'
import { shardOfJob } from '../../src/job/ids.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { at, DAY, MINUTE, nominals, START, setup } from './backfill-kit.ts'
import { record } from './kit.ts'

const minuteOf = (instant: number): number => Math.floor(instant / MINUTE)

/** Schedules, and by hand whether they fire at the beginning of a minute. */
const SCHEDULES: [string, object, (instant: number) => boolean][] = [
  ['every quarter of an hour', { cron: '*/15 * * * *' }, (instant) => minuteOf(instant) % 15 === 0],
  [
    'at a quarter past nine on workdays',
    { cron: '15 9 * * 1-5' },
    (instant) => new Date(instant).getUTCDay() % 6 !== 0 && minuteOf(instant) % 1_440 === 9 * 60 + 15,
  ],
  [
    'every 20 minutes of a clock that is half an hour off',
    { cron: '*/20 * * * *', timezone: 'Asia/Kolkata' },
    (instant) => (minuteOf(instant) + 30) % 20 === 0,
  ],
  [
    'daily where clocks changed in between',
    { cron: '0 8 * * *', timezone: 'Europe/Berlin' },
    // On 26 October 2025 at 01:00 UTC summer time ended.
    (instant) => minuteOf(instant) % 1_440 === (instant < Date.UTC(2025, 9, 26, 1) ? 6 : 7) * 60,
  ],
  [
    'every 11 minutes from a beginning',
    { every: 'PT11M', startAt: at(-20 * DAY) },
    (instant) => instant >= START - 20 * DAY && (minuteOf(instant) - minuteOf(START - 20 * DAY)) % 11 === 0,
  ],
]
/** Where those of a range that have a run have left it. */
const PLACES = ['attempts', 'runs', 'dead_letters', 'backfill_runs'] as const
const VALUES: Record<(typeof PLACES)[number], string> = {
  attempts: `(nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
    select n, n, $3, $1, 1, 1, 1, 1, $2, 1, 0, true, true`,
  runs: `(nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause, delivery,
    one_off, cancel_requested, has_dependents) select n, $3, 0, $1, 1, 0, 1, 1, 0, 1000, $2, 2, 5, 0, 0, false, false, false`,
  dead_letters: `(nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause, delivery, one_off)
    select n, n, $3, $1, 1, 1, 1, 1, 1, 1000, $2, 5, 0, 0, false`,
  backfill_runs: `(nominal_at, job_id, backfill_id, tenant_id, shard, outcome) select n, $1, gen_random_uuid(), 1, $2, 1`,
}

test.each(SCHEDULES)('%s: exactly the times counted by hand, but for those that have a run', async (_, when, fires) => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create({ queue: 'reports', overlap: 'allow', ...when })
  await t.kit.jobs.pause(jobId)
  await t.kit.settle()
  const random = seededRandom(11)
  // Summer time, its end, and the days before now; edges at whole minutes, where times are, and beside them.
  for (const around of [Date.UTC(2025, 9, 25, 22), START - 12 * DAY, START - 3 * DAY]) {
    const from = around + Math.floor(random.float() * 600) * MINUTE + (random.float() < 0.5 ? 0 : 1)
    const to = from + DAY + Math.floor(random.float() * 60) * MINUTE
    const times: number[] = []
    for (let instant = Math.ceil(from / MINUTE) * MINUTE; instant < to; instant += MINUTE) {
      if (fires(instant)) times.push(instant)
    }
    const taken = times.filter(() => random.float() < 0.4)
    for (const place of PLACES) {
      const mine = taken.filter(() => random.float() < 0.4).map((instant) => new Date(instant))
      // A run that waits stays where it is.
      const when = place === 'runs' ? at(900 * DAY) : at(0)
      const into = `insert into ${place} ${VALUES[place]} from unnest($4::timestamptz[]) n where $3::timestamptz is not null`
      await t.fabricate(into, [jobId, shardOfJob(jobId), when, mine])
    }
    const kept = await t.query<{ nominal_at: Date }>(
      PLACES.map((place) => `select nominal_at from ${place} where job_id = '${jobId}'`).join(' union '),
    )
    const left = new Set(kept.map(({ nominal_at }) => Number(nominal_at)))
    const wanted = times.filter((instant) => !left.has(instant))
    const range = { from: new Date(from), to: new Date(to), concurrency: 40 }
    const dry = await t.kit.backfills.preview(jobId, range)
    expect([dry.count, dry.leftOut]).toEqual([wanted.length, times.length - wanted.length])
    if (wanted.length === 0) continue
    seen.length = 0
    const { backfillId } = await t.kit.backfills.create(jobId, range)
    await t.kit.settle()
    expect(nominals(seen).map(Number).sort()).toEqual(wanted.sort())
    const made = await t.kit.backfills.get(backfillId)
    const counts = { total: times.length, created: wanted.length, leftOut: times.length - wanted.length }
    expect(made).toMatchObject({
      status: 'completed',
      position: range.to,
      counts: { ...counts, succeeded: wanted.length },
    })
  }
})
