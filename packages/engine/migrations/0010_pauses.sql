-- Pauses of tenants, keys and origins; limits of what may wait in a queue; unique keys.

-- What is paused besides queues and jobs: a tenant (kind 0), one of its keys (1) or an origin that it calls (2), by `name`. One that has
-- ended stays for a moment, until the runs that it sent away have been called back.
create table pauses (
  paused_at timestamptz(3) not null,
  ended_at timestamptz(3),
  id uuid not null,
  tenant_id integer not null,
  kind smallint not null,
  name text not null,
  paused_by text not null,
  reason text,
  primary key (id),
  unique (tenant_id, kind, name)
);
alter table pauses enable row level security;
create policy of_tenant on pauses for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- Who paused it.
alter table queues add column paused_by text;
alter table jobs add column paused_by text;
alter table specs add column paused_by text;

-- Creates are refused while more runs than `max_depth` wait to be started, or the next one has waited for longer than `max_age_ms`.
alter table queues add column max_depth integer;
alter table queues add column max_age_ms bigint;
-- What recurring jobs of the queue are spread over that say nothing themselves.
alter table queues add column jitter_ms integer;
create index queues_with_settings on queues (id) where max_depth is not null or max_age_ms is not null or jitter_ms is not null;
-- Only a question that says "queue_id > 0" is answered by it, as with leased ones.
create index runs_limited_of_queue on runs (queue_id) where state = 4 and queue_id > 0;

-- Of a unique key (kind 2): jobs that were created under it before `job_id`, and may still be there.
alter table keys add column others uuid[];
