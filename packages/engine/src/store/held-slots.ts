import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import { endedLately } from './ended-lately.ts'

/**
 * The text that finds the live leases of a key, as the view `held_slots` does, for statements that lock rows. What stands in a receipt
 * that nobody has taken apart for a week counts, whatever has become of it.
 */
export const heldSlots = ({ shard, key, now }: { shard: string; key: string; now: string }): string =>
  `select from belfry.runs r where /*shards r*/ r.shard = ${shard} and r.limit_key = ${key} and r.state = ${RUN_STATE.leased}
   union all
   select from belfry.limits l cross join lateral unnest(l.packed_by, l.packed_jobs) as u (holder, job_id)
   cross join lateral (select from belfry.receipts c where c.holder = u.holder limit 1) c
   where /*shards l*/ l.shard = ${shard} and l.kind = ${LIMIT_KIND.key} and l.key = ${key}
     and not exists (
       select from belfry.attempts a where a.shard = l.shard and a.job_id = u.job_id and a.holder = u.holder and ${endedLately(now)}
         and a.number = 1 offset 0)
     and not exists (select from belfry.runs r where /*shards r*/ r.shard = l.shard and r.job_id = u.job_id and r.holder = u.holder offset 0)`
