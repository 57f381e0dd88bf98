import { KEYED, RUN_STATE } from '../job/states.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Asked, Gauge, type GaugeDeps, type Reading, type ReadingRow, type Refusal, readingOf } from './gauge.ts'

const ready = (delivery: string): string =>
  `belfry.runs r where r.queue_id = u.queue_id and r.state = ${RUN_STATE.ready} and r.delivery ${delivery}`
const KINDS = [`< ${KEYED}`, `>= ${KEYED}`]

/**
 * Runs that wait to be started: ready ones, by the index of each kind, and those that wait for a slot of their key; no further than
 * the limit and one more. And since when the next one of each level has been due.
 */
const MEASURE = statement(
  'measure_queues',
  `select u.queue_id,
     ${KINDS.map((kind) => `(select count(*)::int from (select from ${ready(kind)} limit u.bound) r)`).join('\n       + ')}
       + (select count(*)::int from (select from belfry.runs r where r.queue_id = u.queue_id and r.queue_id > 0 and r.state = ${RUN_STATE.limited} limit u.bound) r),
     (select min(h.due_at) from generate_series(0, 9) as p (priority) cross join lateral (
        ${KINDS.map((kind) => `(select r.due_at from ${ready(kind)} and r.priority = p.priority order by r.turn limit 1)`).join('\n        union all\n        ')}) h)
   from unnest($1::int[], $2::bigint[]) as u (queue_id, bound)`,
)

const REFUSAL: Refusal = {
  code: 'queue_full',
  neverFits: ({ name, jobs }, maxDepth) =>
    `${jobs} jobs of one call never fit into the queue "${name}", whose maxDepth is ${maxDepth}: send at most ${maxDepth} of them at a time`,
  full: (name, waiting, maxDepth) => `the queue "${name}" is full: ${waiting} in it, and its maxDepth is ${maxDepth}`,
  late: (name, ageMs, maxAgeMs) =>
    `the queue "${name}" is late: its next run has waited for ${ageMs} ms, and its maxAge is ${maxAgeMs} ms`,
}

/** Keeps queues within `maxDepth` and `maxAge`. */
export function queueGauge(deps: { db: Queryable; clock: Clock; limits: GaugeDeps['limits'] }): Gauge {
  return new Gauge({ ...deps, refusal: REFUSAL, measure: (queues) => measure(deps.db, queues) })
}

async function measure(db: Queryable, queues: readonly Asked[]): Promise<Reading[]> {
  const ids = queues.map(({ id }) => id)
  const bounds = queues.map(({ limits }) => (limits.maxDepth ?? 0) + 1)
  return (await db.query<ReadingRow>(MEASURE, [ids, bounds])).map(readingOf)
}
