-- Runs that wait for another run of their job, by job: the sweep goes from one job to the next.
create index runs_blocked on runs (shard, job_id, nominal_at) where state = 3;
