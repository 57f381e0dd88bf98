-- breaking
-- A leased run is a row, and nothing else is. What receipts still list becomes rows, which their holders end by their fence, or the reaper closes.

-- A claim of an older node that is under way ends before, or fails.
lock table runs, receipts in access exclusive mode;

insert into runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version, attempt, failures,
  timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents, limit_key)
select u.nominal_at, u.due_at, 0, c.holder, c.leased_at, c.lease_until, c.leased_at + u.timeout_ms * interval '1 ms', u.job_id, c.tenant_id, c.queue_id,
  u.job_version, 1, 0, u.timeout_ms, u.shard, 1, u.priority, u.cause, case when u.limit_key is null then 0 else 2 end, c.one_off, false,
  exists (select from edges e where e.shard = u.shard and e.parent = u.job_id), u.limit_key
from receipts c cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.due_ats, c.job_versions, c.timeouts_ms, c.priorities, c.run_causes,
  c.limit_keys) as u (shard, job_id, nominal_at, due_at, job_version, timeout_ms, priority, cause, limit_key)
where not exists (
  select from attempts a where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at
    and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1)
on conflict do nothing;

drop view held_slots;
drop view packed_runs;
drop table receipts;
alter table timers drop column packed_nominal, drop column packed_by;
alter table limits drop column packed_by, drop column packed_jobs;

-- One claim serves runs that may be repeated and runs that may not: they stand in one index. Those with a key stay apart.
drop index runs_ready;
drop index runs_ready_once;
create index runs_ready on runs (queue_id, priority, turn) where state = 0 and delivery < 2;

-- A lease stands in an index of its queue only where it holds a slot of the queue's limit.
drop index runs_leased_of_queue;
alter table runs add column queue_slot boolean not null default false;
create index runs_leased_of_queue on runs (queue_id) where state = 1 and queue_slot;
alter table limits add column has_older boolean not null default false;
update limits set has_older = true where kind = 1;
