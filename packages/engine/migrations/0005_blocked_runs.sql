-- Runs that wait for another run of their job, by job: the sweep goes from one job to the next.
create index runs_blocked on runs (shard, job_id, nominal_at) where state = 3;

-- Recurring jobs whose runs are not to start later than so long after their time, but for canceled ones, whose runs have ended: the
-- sweep looks for those that did not.
create index jobs_with_start_deadline on jobs (shard, id) where status < 3 and definition ->> 'startDeadlineMs' is not null;
