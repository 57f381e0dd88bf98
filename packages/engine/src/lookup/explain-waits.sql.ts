import { SUBJECT } from '../audit/record-change.sql.ts'
import { KEYED, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { MAX_SCANNED } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import type { Doer } from './explanation.ts'
import { queueShortage } from './queue-shortage.sql.ts'

/** Attempts that ended longer ago say nothing about how fast the queue goes now. */
const LATELY_MS = 300_000
/** Nobody has taken anything for so long, though there was something to take. */
const ABANDONED_MS = 60_000
/** So long a run may lie there before somebody takes it who is there. */
const TAKEN_WITHIN_MS = 5_000

const AHEAD = `select from generate_series(0, 9) as level (priority) cross join lateral (
       select from belfry.runs r where r.queue_id = $2 and r.state = ${RUN_STATE.ready} and r.delivery < ${KEYED} and r.priority = level.priority
         and r.turn < $3 and r.tenant_id = $1
       order by r.queue_id, r.priority, r.turn limit ${MAX_SCANNED}) r limit ${MAX_SCANNED}`

/** Turns fold priority and age into one number, so what goes before a ready run are the smaller ones of each priority. */
const READY = statement(
  'explain_ready',
  `with latest as materialized (
     select a.queue_id, a.finished_at, a.leased_at from belfry.attempts a
     where a.tenant_id = $1 and a.tenant_id > 0 and a.finished_at > to_timestamp(($4::float8 - ${LATELY_MS}) / 1000) and a.finished_at <= to_timestamp($4::float8 / 1000) and a.leased_at is not null
     order by a.finished_at desc limit ${MAX_SCANNED}
   )
   select (select count(*)::int from (${AHEAD}) ahead),
     (select count(*)::int from latest l where l.queue_id = $2),
     (select case when count(*) = ${MAX_SCANNED} then min(l.finished_at) else to_timestamp(($4::float8 - ${LATELY_MS}) / 1000) end from latest l),
     q.paused_at, q.pause_reason, coalesce(q.paused_by, done.actor),
     (select max(l.leased_at) from latest l where l.queue_id = $2),
     exists (select from (select r.queue_id from belfry.runs r where r.state = ${RUN_STATE.leased} order by r.lease_until limit ${MAX_SCANNED}) l where l.queue_id = $2)
   from belfry.queues q left join lateral (
     select c.actor from belfry.job_changes c
     where q.paused_at is not null and c.tenant_id = $1 and c.subject = ${SUBJECT.queue} and c.subject_id = q.name and c.action = 'pause'
       and c.changed_at >= q.paused_at - interval '1 second'
     order by c.changed_at limit 1) done on true
   where q.id = $2`,
)

export interface ReadyWait {
  ahead: number
  isAheadComplete: boolean
  expectedStartAt: Instant | null
  expectedStartNote: string | null
  queuePause: Doer | null
  queueLimit: string | null
}

type Row = [
  ahead: number,
  ended: number,
  since: Instant,
  pausedAt: Instant | null,
  pauseReason: string | null,
  pausedBy: string | null,
  lastLeasedAt: Instant | null,
  isPerforming: boolean,
]

/** Where a ready run stands in its queue, and when its turn comes if the queue goes on as it did lately. */
export async function readReadyWait(
  { db, engineDb }: { db: Queryable; engineDb: Queryable },
  tenantId: number,
  { queueId, turn, dueAt }: { queueId: number; turn: number; dueAt: Instant },
  now: Instant,
): Promise<ReadyWait | null> {
  const [row] = await db.query<Row>(READY, [tenantId, queueId, turn, now])
  if (row === undefined) return null
  const [ahead, ended, since, pausedAt, pauseReason, pausedBy, lastLeasedAt, isPerforming] = row
  const queueLimit = await queueShortage(engineDb, queueId, now)
  const isAheadComplete = ahead < MAX_SCANNED
  const wasTaken = isPerforming || now - dueAt < TAKEN_WITHIN_MS || now - (lastLeasedAt ?? 0) < ABANDONED_MS
  const note = noteOf({ isPaused: pausedAt !== null, wasTaken, ended, isAheadComplete })
  // Many may end within one millisecond; over so short a time there is no rate.
  const msPerRun = Math.max(1_000, now - since) / Math.max(1, ended)
  return {
    ahead,
    isAheadComplete,
    expectedStartAt: note === null ? Math.round(now + (ahead + 1) * msPerRun) : null,
    expectedStartNote: note,
    queuePause:
      pausedAt === null
        ? null
        : { action: 'pause', actor: pausedBy ?? 'unknown', at: new Date(pausedAt), reason: pauseReason },
    queueLimit,
  }
}

/** Why nobody can say when it starts; null: that can be said. */
function noteOf(queue: {
  isPaused: boolean
  wasTaken: boolean
  ended: number
  isAheadComplete: boolean
}): string | null {
  if (queue.isPaused) return 'the queue is paused'
  if (!queue.wasTaken) return 'nobody takes work of this queue now'
  if (queue.ended === 0) return 'nothing of this queue has ended in the last five minutes'
  return queue.isAheadComplete ? null : `more than ${MAX_SCANNED} runs go before it`
}
