-- The service: tenants with quotas, keys, secrets, payloads by reference, HTTP calls, and the record of every change.

alter table tenants
  add column created_at timestamptz(3) not null default now(),
  add column tier text not null default 'standard',
  add column weight integer not null default 1,
  add column max_active_jobs integer,
  add column max_payload_bytes integer,
  add column creates_per_second integer,
  add column requests_per_second integer;

-- A queue is for workers (0) or for HTTP calls (1); null until its first use decides.
alter table queues
  add column created_at timestamptz(3) not null default now(),
  add column paused_at timestamptz(3),
  add column deleted_at timestamptz(3),
  add column kind smallint,
  add column shared boolean not null default false,
  add column pause_reason text;
create index queues_paused on queues (id) where paused_at is not null;
-- A deleted queue keeps its number: nodes may know it, and it is back when it is named again.
create index queues_deleted on queues (deleted_at) where deleted_at is not null;
create index queues_for_http on queues (id) where kind = 1;
-- The system's own queue (tenant 0), shared by all tenants and served by nodes.
insert into queues (id, tenant_id, name, kind, shared) select coalesce(max(q.id), 0) + 1, 0, 'http', 1, true from queues q;

-- What a node does: a bit each for api (1), promoter (2), dispatcher (4) and archivist (8).
alter table nodes
  add column roles smallint not null default 15,
  add column address text;

-- For quotas and for deleting a tenant. Not of the tenant `default`: whoever has no other does not pay for it.
create index timers_by_tenant on timers (tenant_id) where tenant_id <> 1;

-- Only the hash of a key is kept.
create table api_keys (
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  id uuid primary key,
  tenant_id integer not null,
  name text not null,
  prefix text not null,
  scopes text[] not null,
  hash bytea not null unique
);
create index api_keys_by_tenant on api_keys (tenant_id, id);

-- What is sealed is encrypted with AES-256-GCM under the installation's key.
create table secrets (
  updated_at timestamptz(3) not null,
  tenant_id integer not null,
  name text not null,
  sealed bytea not null,
  primary key (tenant_id, name)
);

create table signing_keys (
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  id uuid not null,
  tenant_id integer not null,
  sealed bytea not null,
  primary key (tenant_id, id)
);

create table payloads (
  created_at timestamptz(3) not null,
  used_at timestamptz(3) not null,
  id uuid not null,
  tenant_id integer not null,
  size integer not null,
  shard smallint not null,
  content_type text not null,
  sealed bytea not null,
  primary key (shard, id)
);
create index payloads_by_use on payloads (used_at);

-- Which job names which payload, and when it will next need it: as long as a job has a future its payload stays.
create table payload_uses (
  needed_at timestamptz(3) not null,
  payload_id uuid not null,
  job_id uuid not null,
  shard smallint not null,
  job_shard smallint not null,
  primary key (shard, payload_id, job_id)
);
create index payload_uses_by_need on payload_uses (needed_at);

-- What a run was triggered with in place of its job's payload.
create table run_payloads (
  nominal_at timestamptz(3) not null,
  job_id uuid not null,
  tenant_id integer not null,
  shard smallint not null,
  payload json not null,
  primary key (shard, job_id, nominal_at)
);
create index run_payloads_by_time on run_payloads (nominal_at);

-- Who changed what: one row per change of a job, queue, key, secret or tenant.
create table job_changes (
  changed_at timestamptz(3) not null,
  -- Orders changes of the same millisecond: whoever changes the same thing waits for the one before.
  written_at timestamptz not null default clock_timestamp(),
  tenant_id integer not null,
  shard smallint not null,
  subject smallint not null,
  subject_id text not null,
  action text not null,
  actor text not null,
  before json,
  after json
) partition by range (changed_at);
create index job_changes_by_subject on job_changes (tenant_id, subject, subject_id, changed_at);

-- Circuits that are not closed, as all nodes see them.
create table circuits (
  opened_at timestamptz(3) not null,
  probe_at timestamptz(3) not null,
  tenant_id integer not null,
  open_ms integer not null,
  failures integer not null,
  probing boolean not null default false,
  origin text not null,
  reason text not null,
  primary key (tenant_id, origin)
);

-- A tenant's runs in flight, for lists and counts: without it a tenant with few would walk those of all others. Not of the
-- tenant `default`: it costs a sixth of what the database does for a run, and whoever has no other tenant does not pay.
create index runs_by_tenant on runs (tenant_id, job_id, nominal_at) where tenant_id <> 1;

-- What an HTTP target answered: headers, the first 4 KiB of the body, timings.
alter table attempts add column response json;

-- Lines whose job was not to be found are nobody's (0).
alter table attempt_logs add column tenant_id integer not null default 0;

-- The second wall: tenant-facing reads run as a role that sees one tenant's rows, and none if no tenant is set.
alter table jobs enable row level security;
create policy of_tenant on jobs for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table specs enable row level security;
create policy of_tenant on specs for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table timers enable row level security;
create policy of_tenant on timers for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table runs enable row level security;
create policy of_tenant on runs for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table attempts enable row level security;
create policy of_tenant on attempts for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table attempt_logs enable row level security;
create policy of_tenant on attempt_logs for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table dead_letters enable row level security;
create policy of_tenant on dead_letters for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table skips enable row level security;
create policy of_tenant on skips for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table job_changes enable row level security;
create policy of_tenant on job_changes for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table payloads enable row level security;
create policy of_tenant on payloads for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table run_payloads enable row level security;
create policy of_tenant on run_payloads for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table secrets enable row level security;
create policy of_tenant on secrets for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table keys enable row level security;
create policy of_tenant on keys for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table tenants enable row level security;
create policy of_tenant on tenants for select using (id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table queues enable row level security;
create policy of_tenant on queues for select using (shared or tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- Many first attempts leased at once: one row per lease, tenant and queue lists them, instead of a row of `runs` for each, until
-- each has ended or has become a row.
create table receipts (
  holder bigint not null,
  leased_at timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  tenant_id integer not null,
  queue_id integer not null,
  one_off boolean not null,
  job_ids uuid[] not null,
  nominal_ats timestamptz(3)[] not null,
  due_ats timestamptz(3)[] not null,
  job_versions integer[] not null,
  timeouts_ms integer[] not null,
  shards smallint[] not null,
  priorities smallint[] not null,
  causes smallint[] not null,
  primary key (holder, tenant_id, queue_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0);
-- They live for a moment: compressing them is not worth it.
alter table receipts
  alter column job_ids set storage external,
  alter column nominal_ats set storage external,
  alter column due_ats set storage external,
  alter column job_versions set storage external,
  alter column timeouts_ms set storage external,
  alter column shards set storage external,
  alter column priorities set storage external,
  alter column causes set storage external;
create index receipts_by_end on receipts (lease_until);
alter table receipts enable row level security;
create policy of_tenant on receipts for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- The runs that stand in a receipt alone, as if they were leased rows. `among` is the receipt's list: whoever looks for one job
-- asks `among @> array[job]` first, so that receipts without it are not unpacked. The offsets keep both look-ups look-ups.
create view packed_runs with (security_invoker = true) as
select u.shard, u.job_id, u.nominal_at, u.due_at, c.tenant_id, c.queue_id, u.job_version, u.timeout_ms, u.priority, u.cause, c.holder, c.leased_at,
  c.lease_until, 1::smallint as state, 1 as attempt, 0 as failures, c.job_ids as among
from receipts c cross join lateral unnest(c.shards, c.job_ids, c.nominal_ats, c.due_ats, c.job_versions, c.timeouts_ms, c.priorities, c.causes)
  as u (shard, job_id, nominal_at, due_at, job_version, timeout_ms, priority, cause)
where not exists (
    select from attempts a where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at
      and a.finished_at >= c.leased_at - interval '1 day' and a.number = 1 offset 0)
  and not exists (
    select from runs r where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at offset 0);
