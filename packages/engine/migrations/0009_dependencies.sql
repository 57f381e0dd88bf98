-- Dependencies: jobs that wait for others, what they are told when one of those ends, and groups of jobs.

-- One row per pair of a job and one that waits for it. It goes when the parent has ended as the child wants it; what broke stays, so that
-- a parent that is opened again opens its children. `child` is a job, or a batch that counts its jobs.
create table edges (
  -- The nominal time of the run that waits; null: the child gets a run for each run of the parent, or is a batch.
  child_nominal timestamptz(3),
  parent uuid not null,
  child uuid not null,
  tenant_id integer not null,
  -- of the parent
  shard smallint not null,
  child_shard smallint not null,
  -- one-off (0), chain (1) or batch (2)
  kind smallint not null,
  -- Which ends of the parent satisfy it: success (0), failure (1) or finish (2).
  wanted smallint not null,
  -- When the parent fails: cancel (0), run (1) or block (2).
  on_failure smallint not null,
  -- open (0); broken (1): the parent failed; canceled (2): that ended the child.
  state smallint not null default 0,
  primary key (shard, parent, child)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Only a question that says "tenant_id > 0" is answered by it: whoever names both would else walk all parents of the child.
create index edges_by_child on edges (child) where tenant_id > 0;
alter table edges enable row level security;
create policy of_tenant on edges for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- What somebody has to be told: written by the statement that ends a run, deleted by the transaction that tells it. The run and the number of
-- its last attempt say which end it was.
create table outbox (
  nominal_at timestamptz(3) not null,
  job_id uuid not null,
  number integer not null,
  shard smallint not null,
  outcome smallint not null,
  one_off boolean not null,
  primary key (shard, job_id, nominal_at, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create table batches (
  created_at timestamptz(3) not null,
  finished_at timestamptz(3),
  id uuid not null,
  -- the job that runs when all others have finished
  on_finish uuid,
  tenant_id integer not null,
  total integer not null,
  succeeded integer not null default 0,
  failed integer not null default 0,
  canceled integer not null default 0,
  skipped integer not null default 0,
  shard smallint not null,
  name text,
  created_by text,
  primary key (shard, id)
);
create index batches_by_age on batches (created_at);
alter table batches enable row level security;
create policy of_tenant on batches for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
