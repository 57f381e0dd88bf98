-- Named calendars: the days on which a tenant does not work, and whether its jobs know of the last change.

create table calendars (
  updated_at timestamptz(3) not null,
  tenant_id integer not null,
  -- Raised when the days or the weekend change; the jobs that name the calendar are planned anew up to `replanned`.
  version integer not null,
  replanned integer not null,
  name text not null,
  weekend smallint[] not null,
  -- [["2026-12-25", "Christmas Day"], ["2026-12-26"]], in order
  days json not null,
  primary key (tenant_id, name)
);
create index calendars_to_replan on calendars (updated_at) where replanned < version;
alter table calendars enable row level security;
create policy of_tenant on calendars for select using (tenant_id = nullif(current_setting('belfry.tenant', true), '')::integer);

-- Jobs that exclude anything: few, and looked through when a calendar changes or shall go.
create index jobs_that_exclude on jobs (tenant_id, id) where tenant_id > 0 and json_typeof(definition #> '{schedule,exclude}') = 'array';
