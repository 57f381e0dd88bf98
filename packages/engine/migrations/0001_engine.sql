-- The engine: timers, runs, leases and history.
-- Column order follows alignment (8-byte columns first), since the hot tables are written several times per run.

create table meta (
  key text primary key,
  value jsonb not null
);

-- One that is just being deleted names its deletion, and gets no more jobs.
create table tenants (
  id integer primary key,
  name text not null unique,
  deletion uuid
);
insert into tenants (id, name) values (1, 'default');

create table queues (
  id integer primary key,
  tenant_id integer not null,
  name text not null,
  unique (tenant_id, name)
);

-- A node is live while it pulses.
create table nodes (
  pulsed_at timestamptz(3) not null,
  started_at timestamptz(3) not null,
  id uuid not null,
  shard smallint not null,
  primary key (shard, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- Definitions of recurring jobs, and of jobs whose plan has not been made yet.
create table jobs (
  updated_at timestamptz(3) not null,
  paused_at timestamptz(3),
  id uuid not null,
  tenant_id integer not null,
  version integer not null,
  shard smallint not null,
  status smallint not null,
  name text,
  pause_reason text,
  definition json not null,
  primary key (shard, id)
);
-- Partial, though every job is in it: a look-up by shard and id can only take the primary key. Planned while a table or a day was
-- empty, either index looks as good as the other.
create index jobs_by_tenant on jobs (tenant_id, id) where tenant_id > 0;

-- Definitions of one-offs, written once, by the day that stands in the id.
create table specs (
  updated_at timestamptz(3) not null,
  paused_at timestamptz(3),
  job_id uuid not null,
  tenant_id integer not null,
  version integer not null,
  shard smallint not null,
  name text,
  pause_reason text,
  definition json not null,
  primary key (shard, job_id)
) partition by range (job_id);
create index specs_by_tenant on specs (tenant_id, job_id) where tenant_id > 0;
create table specs_kept partition of specs default;

-- Interned schedules: millions of jobs share few.
create table schedules (
  id bigint not null,
  shard smallint not null,
  spec text not null,
  primary key (shard, id)
);

-- When a job fires next, and all that promotion needs to know. `packed_by` and `packed_nominal` name its last run that was born into
-- a receipt: whether that is still alive is told by the receipt and by history.
create table timers (
  due_at timestamptz(3) not null,
  nominal_at timestamptz(3),
  decided_until timestamptz(3),
  last_trigger_at timestamptz(3),
  packed_nominal timestamptz(3),
  packed_by bigint,
  schedule_id bigint,
  job_id uuid not null,
  version integer not null,
  job_version integer not null,
  tenant_id integer not null,
  queue_id integer not null,
  timeout_ms integer not null,
  jitter_ms integer not null,
  remaining_runs integer,
  shard smallint not null,
  priority smallint not null,
  overlap smallint not null,
  delivery smallint not null,
  primary key (shard, job_id)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
-- Partial, though all but paused timers are in it: so a look-up by job can only take the primary key. Planned while the
-- table was empty, it took this index, and later walked a whole shard per job.
create index timers_by_due on timers (shard, due_at, job_id) where due_at < 'infinity';

-- What is in flight.
create table runs (
  nominal_at timestamptz(3) not null,
  due_at timestamptz(3) not null,
  turn bigint not null,
  holder bigint,
  leased_at timestamptz(3),
  lease_until timestamptz(3),
  deadline timestamptz(3),
  job_id uuid not null,
  tenant_id integer not null,
  queue_id integer not null,
  job_version integer not null,
  attempt integer not null,
  failures integer not null,
  timeout_ms integer not null,
  shard smallint not null,
  state smallint not null,
  priority smallint not null,
  cause smallint not null,
  delivery smallint not null,
  one_off boolean not null,
  cancel_requested boolean not null,
  has_dependents boolean not null,
  primary key (shard, job_id, nominal_at)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
create index runs_ready on runs (queue_id, priority, turn) where state = 0 and delivery = 0;
create index runs_ready_once on runs (queue_id, priority, turn) where state = 0 and delivery = 1;
-- Led by time alone: new leases end last, so their entries go to the index's last page.
create index runs_leased on runs (lease_until) where state = 1;
create index runs_waiting on runs (shard, due_at) where state = 2;

-- What has happened: one row per attempt, appended when it ends.
create table attempts (
  nominal_at timestamptz(3) not null,
  due_at timestamptz(3) not null,
  leased_at timestamptz(3),
  started_at timestamptz(3),
  finished_at timestamptz(3) not null,
  holder bigint,
  job_id uuid not null,
  tenant_id integer not null,
  queue_id integer not null,
  job_version integer not null,
  number integer not null,
  shard smallint not null,
  outcome smallint not null,
  failure_class smallint,
  status_code smallint,
  cause smallint not null,
  counted boolean not null,
  final boolean not null,
  error text,
  result json
) partition by range (finished_at);
create index attempts_by_run on attempts (shard, job_id, nominal_at);
create index attempts_by_tenant on attempts (tenant_id, finished_at) where tenant_id > 0;

-- Runs that used up their attempts or failed for good, until they are redriven or expire.
create table dead_letters (
  nominal_at timestamptz(3) not null,
  due_at timestamptz(3) not null,
  died_at timestamptz(3) not null,
  job_id uuid not null,
  tenant_id integer not null,
  queue_id integer not null,
  job_version integer not null,
  attempt integer not null,
  failures integer not null,
  timeout_ms integer not null,
  shard smallint not null,
  priority smallint not null,
  cause smallint not null,
  delivery smallint not null,
  failure_class smallint,
  one_off boolean not null,
  error text,
  primary key (shard, job_id, nominal_at)
);
create index dead_letters_by_tenant on dead_letters (tenant_id, died_at);

-- Nominal times that have no run, as half-open ranges [from_nominal, to_nominal), with the reason.
create table skips (
  from_nominal timestamptz(3) not null,
  to_nominal timestamptz(3) not null,
  decided_at timestamptz(3) not null,
  job_id uuid not null,
  tenant_id integer not null,
  job_version integer not null,
  count integer,
  shard smallint not null,
  reason smallint not null
) partition by range (decided_at);
create index skips_by_job on skips (shard, job_id, from_nominal);

-- Idempotency keys and names, each in the shard of its own hash.
create table keys (
  expires_at timestamptz(3) not null,
  fingerprint bigint,
  job_id uuid not null,
  tenant_id integer not null,
  shard smallint not null,
  kind smallint not null,
  key text not null,
  primary key (shard, tenant_id, kind, key)
);

-- What an attempt left for the next one.
create table checkpoints (
  nominal_at timestamptz(3) not null,
  job_id uuid not null,
  attempt integer not null,
  shard smallint not null,
  value json not null,
  primary key (shard, job_id, nominal_at)
);

create table attempt_logs (
  nominal_at timestamptz(3) not null,
  logged_at timestamptz(3) not null,
  job_id uuid not null,
  attempt integer not null,
  line integer not null,
  shard smallint not null,
  level smallint not null,
  message text not null
) partition by range (logged_at);
create index attempt_logs_by_run on attempt_logs (shard, job_id, nominal_at, attempt, line);

-- For callers in any language: the job and a timer that is not planned yet, in the caller's own transaction.
-- The shard's owner understands the definition and plans it; one that cannot be understood is paused with the reason.
create function create_job(definition jsonb) returns uuid
language plpgsql
set search_path from current
as $$
declare
  shards integer := (select (value #>> '{}')::integer from meta where key = 'shards');
  at timestamptz(3) := clock_timestamp();
  of_shard smallint := floor(random() * shards)::smallint;
  owner integer;
  noise text := encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
  made uuid := (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(of_shard::integer), 3, '0')
    || '8' || substr(noise, 1, 15))::uuid;
begin
  if jsonb_typeof(definition) is distinct from 'object' then
    raise exception 'a job must be a JSON object such as {"queue": "emails", "payload": {}}' using errcode = '22023';
  end if;
  if octet_length(definition::text) > 300000 then
    raise exception 'the job is too large: store the payload elsewhere and give payloadRef' using errcode = '22023';
  end if;
  -- Looked up by the insert itself: a deletion waits for who has begun to insert, and is seen by who begins later.
  insert into jobs (updated_at, id, tenant_id, version, shard, status, definition)
  select at, made, t.id, 1, of_shard, 0, definition from tenants t where t.name = coalesce(definition ->> 'tenant', 'default') and t.deletion is null
  returning tenant_id into owner;
  if owner is null then
    raise exception 'there is no tenant %', definition ->> 'tenant' using errcode = '22023';
  end if;
  insert into timers (due_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
  values (at, made, 1, 1, owner, 0, 0, 0, of_shard, 5, 0, 0);
  perform pg_notify(current_schema() || '_wake', json_build_object('timers', json_build_array(json_build_array(of_shard, (extract(epoch from at) * 1000)::bigint)))::text);
  return made;
end
$$;
