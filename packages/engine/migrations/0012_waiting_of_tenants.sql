-- Creates are refused while so many of a tenant's runs as `max_waiting_runs` wait to be started, in all queues together, or the oldest of
-- them has been due for longer than `max_waiting_seconds`.

alter table tenants add column max_waiting_runs integer;
alter table tenants add column max_waiting_seconds integer;
create index tenants_with_limits on tenants (id) where max_waiting_runs is not null or max_waiting_seconds is not null;
