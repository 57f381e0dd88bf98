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
alter table secrets enable row level security;
create policy of_tenant on secrets for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table keys enable row level security;
create policy of_tenant on keys for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table tenants enable row level security;
create policy of_tenant on tenants for select using (id = nullif(current_setting('belfry.tenant', true), '')::integer);
alter table queues enable row level security;
create policy of_tenant on queues for select using (shared or tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
