-- breaking
-- A list of a key's runs in receipts names them by holder and job, which is enough: a receipt has no more than one run of a one-off. It is
-- written with every claim of its key. An older program would write the times, too.

drop view held_slots;
alter table limits drop column packed_times;

-- The live leases of keys, as rows or in receipts. What has ended is in history under its holder, and what has left its receipt is a row of
-- its holder until then. When a run in a receipt was due stands there only. The offsets keep the look-ups look-ups.
create view held_slots with (security_invoker = true) as
select r.shard, r.limit_key, r.job_id, r.nominal_at, r.leased_at, null::bigint as packed_by from runs r where r.state = 1 and r.limit_key is not null
union all
select l.shard, l.key, u.job_id, null, c.leased_at, u.holder
from limits l cross join lateral unnest(l.packed_by, l.packed_jobs) as u (holder, job_id)
cross join lateral (
  select c.leased_at from receipts c where c.holder = u.holder limit 1) c
where l.kind = 0
  and not exists (
    select from attempts a where a.shard = l.shard and a.job_id = u.job_id and a.holder = u.holder
      and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1 offset 0)
  and not exists (
    select from runs r where r.shard = l.shard and r.job_id = u.job_id and r.holder = u.holder offset 0);
