-- breaking
-- Runs that have a key stand in receipts too. An older program would take such a receipt apart without the keys.

alter table receipts add column limit_keys bigint[];
alter table receipts alter column limit_keys set storage external;

-- Runs of the key that were leased into receipts, by holder, job and nominal time. They are where to look, not what counts: some have
-- ended since, or are rows again.
alter table limits add column packed_by bigint[] not null default '{}';
alter table limits add column packed_jobs uuid[] not null default '{}';
alter table limits add column packed_times timestamptz(3)[] not null default '{}';

-- The live leases of keys, as rows or in receipts. What has ended is in history, and what has left its receipt is a row. The offsets keep the
-- look-ups look-ups.
create view held_slots with (security_invoker = true) as
select r.shard, r.limit_key, r.job_id, r.nominal_at, r.leased_at, null::bigint as packed_by from runs r where r.state = 1 and r.limit_key is not null
union all
select l.shard, l.key, u.job_id, u.nominal_at, c.leased_at, u.holder
from limits l cross join lateral unnest(l.packed_by, l.packed_jobs, l.packed_times) as u (holder, job_id, nominal_at)
cross join lateral (
  select c.leased_at from receipts c where c.holder = u.holder limit 1) c
where l.kind = 0
  and not exists (
    select from attempts a where a.shard = l.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at
      and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1 offset 0)
  and not exists (
    select from runs r where r.shard = l.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at offset 0);
