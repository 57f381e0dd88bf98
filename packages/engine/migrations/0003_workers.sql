-- Pull workers: who they are, what they hold and how far they are.

-- Remote lease calls have negative holders: one that is repeated finds its runs here, and no other lease pays for it.
create index runs_of_worker on runs (holder) where state = 1 and holder < 0;

-- A run's checkpoint, its progress, or both.
alter table checkpoints
  alter column value drop not null,
  add column tenant_id integer not null default 0,
  add column progress json;
alter table checkpoints enable row level security;
create policy of_tenant on checkpoints for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- Workers that said who they are, or were seen at work. One that is not seen for a while is shown as lost.
create table workers (
  started_at timestamptz(3) not null,
  seen_at timestamptz(3) not null,
  tenant_id integer not null,
  in_flight integer not null default 0,
  capacity integer,
  shard smallint not null,
  is_draining boolean not null default false,
  id text not null,
  version text,
  queues text[] not null default '{}',
  labels json,
  primary key (shard, tenant_id, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
alter table workers enable row level security;
create policy of_tenant on workers for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);
