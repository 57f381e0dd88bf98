-- Limits: how many runs of a key, a queue or an origin may be leased at a time, and how many may start in a period.

-- One row per limited key (kind 0), queue (1) and origin (2). `key` is a queue's number, or the hash of tenant and name. Whoever leases
-- limited runs holds the row, counts live leases, and takes no more than is free. `rate_at` is the theoretical arrival time of the next
-- run, in microseconds since 1970.
create table limits (
  used_at timestamptz(3) not null,
  paused_at timestamptz(3),
  key bigint not null,
  rate_at bigint not null default 0,
  rate_period_ms bigint,
  tenant_id integer not null,
  max_running integer,
  rate_count integer,
  rate_burst integer,
  shard smallint not null,
  kind smallint not null,
  -- wait (0), skip (1) or cancel_oldest (2)
  on_limit smallint not null default 0,
  name text not null,
  paused_by text,
  pause_reason text,
  primary key (shard, kind, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index limits_of_queues on limits (key) where kind = 1;
create index limits_by_tenant on limits (tenant_id, kind, name);
alter table limits enable row level security;
create policy of_tenant on limits for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- The limit that a job's runs share, by its hash; whom its runs are fair to each other by; whether other jobs wait for its runs.
alter table timers add column limit_key bigint;
alter table timers add column fairness_key integer;
alter table timers add column has_dependents boolean not null default false;

alter table runs add column limit_key bigint;
-- The limited origin that its attempt calls, while it is leased.
alter table runs add column origin_key bigint;

alter table dead_letters add column limit_key bigint;
alter table dead_letters add column has_dependents boolean not null default false;

-- Runs with a key are claimed apart from the others: 2 is added to their `delivery`.
create index runs_ready_keyed on runs (queue_id, priority, turn) where state = 0 and delivery >= 2;
create index runs_of_key on runs (shard, limit_key, nominal_at) where limit_key is not null;
create index runs_leased_of_key on runs (shard, limit_key) where state = 1 and limit_key is not null;
-- State 4: it waits for a slot of its key.
create index runs_limited on runs (shard, limit_key, nominal_at) where state = 4;
-- Only a question that says "queue_id > 0" is answered by it: whoever asks for expired leases would else walk all of them.
create index runs_leased_of_queue on runs (queue_id) where state = 1 and queue_id > 0;
create index runs_leased_of_origin on runs (origin_key) where state = 1 and origin_key is not null;
