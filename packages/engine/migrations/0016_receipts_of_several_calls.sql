-- breaking
-- Runs that were leased for several lease calls at once may stand in a receipt, which says who holds each of them. An older program would make rows
-- of them that the wrong one holds: a column changes its name so that one that still runs cannot.

alter table receipts rename column causes to run_causes;

-- Null: all of them are the receipt's own holder's.
alter table receipts add column holders bigint[];
alter table receipts alter column holders set storage external;
create index receipts_shared on receipts (leased_at) where holders is not null;

create or replace view packed_runs with (security_invoker = true) as
select u.shard, u.job_id, u.nominal_at, u.due_at, c.tenant_id, c.queue_id, u.job_version, u.timeout_ms, u.priority, u.cause,
  coalesce(u.holder, c.holder) as holder, c.leased_at, c.lease_until, 1::smallint as state, 1 as attempt, 0 as failures, c.job_ids as among
from receipts c cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.due_ats, c.job_versions, c.timeouts_ms, c.priorities, c.run_causes, c.holders)
  as u (shard, job_id, nominal_at, due_at, job_version, timeout_ms, priority, cause, holder)
where not exists (
    select from attempts a where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at
      and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1 offset 0)
  and not exists (
    select from runs r where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at offset 0);
