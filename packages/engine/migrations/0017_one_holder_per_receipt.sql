-- breaking
-- A receipt has one holder again: runs that were leased for several lease calls at once are rows. What such receipts still list becomes rows.

-- A claim of an older node that is under way ends before, or fails.
lock table runs, receipts in access exclusive mode;

insert into runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version, attempt, failures,
  timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents)
select p.nominal_at, p.due_at, 0, p.holder, p.leased_at, p.lease_until, p.leased_at + p.timeout_ms * interval '1 ms', p.job_id, p.tenant_id, p.queue_id,
  p.job_version, p.attempt, p.failures, p.timeout_ms, p.shard, p.state, p.priority, p.cause, 0, true, false,
  exists (select from edges e where e.shard = p.shard and e.parent = p.job_id)
from packed_runs p
where exists (select from receipts c where c.holders is not null and c.tenant_id = p.tenant_id and c.queue_id = p.queue_id and c.job_ids = p.among)
on conflict do nothing;
delete from receipts where holders is not null;

drop view packed_runs;
drop index receipts_shared;
alter table receipts drop column holders;
create view packed_runs with (security_invoker = true) as
select u.shard, u.job_id, u.nominal_at, u.due_at, c.tenant_id, c.queue_id, u.job_version, u.timeout_ms, u.priority, u.cause,
  c.holder, c.leased_at, c.lease_until, 1::smallint as state, 1 as attempt, 0 as failures, c.job_ids as among
from receipts c cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.due_ats, c.job_versions, c.timeouts_ms, c.priorities, c.run_causes)
  as u (shard, job_id, nominal_at, due_at, job_version, timeout_ms, priority, cause)
where not exists (
    select from attempts a where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at
      and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1 offset 0)
  and not exists (
    select from runs r where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at offset 0);
