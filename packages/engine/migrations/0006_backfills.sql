-- Backfills: nominal times of the past that somebody asked to be run, as one thing that can be watched and canceled.

-- Times before `position_at` have become runs or were left out. A backfill is over (`ended_at`) when its last run has ended, also if it
-- was canceled before. The counts of how runs ended rise when that is seen.
create table backfills (
  created_at timestamptz(3) not null,
  ended_at timestamptz(3),
  from_nominal timestamptz(3) not null,
  to_nominal timestamptz(3) not null,
  position_at timestamptz(3) not null,
  schedule_id bigint not null,
  id uuid not null,
  job_id uuid not null,
  tenant_id integer not null,
  concurrency integer not null,
  total integer not null,
  created integer not null default 0,
  left_out integer not null default 0,
  succeeded integer not null default 0,
  failed integer not null default 0,
  canceled integer not null default 0,
  shard smallint not null,
  -- running (0), completed (1) or canceled (2)
  status smallint not null default 0,
  created_by text not null,
  primary key (shard, id)
);
create index backfills_open on backfills (shard, job_id) where ended_at is null;
create index backfills_over on backfills (ended_at) where ended_at is not null;
create index backfills_of_job on backfills (shard, job_id, id) where tenant_id > 0;
alter table backfills enable row level security;
create policy of_tenant on backfills for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- The runs that a backfill made, and how each ended; null: it may still be alive.
create table backfill_runs (
  nominal_at timestamptz(3) not null,
  job_id uuid not null,
  backfill_id uuid not null,
  tenant_id integer not null,
  shard smallint not null,
  outcome smallint,
  primary key (shard, job_id, nominal_at)
);
create index backfill_runs_open on backfill_runs (shard, backfill_id, nominal_at) where outcome is null;
alter table backfill_runs enable row level security;
create policy of_tenant on backfill_runs for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
