-- breaking
-- A run says itself at which gate it stands: leased, the limited origin whose slot it holds; waiting, the pause, circuit or limit that put it aside.
alter table runs rename column origin_key to gate_key;
drop index runs_leased_of_origin;
create index runs_at_gate on runs (gate_key, state, due_at) where gate_key is not null;

-- Runs that are aside already come by themselves: those of circuits and limits within minutes, those of pauses would within six hours. These are
-- let come within five minutes; what is still paused puts them aside again, with its mark.
update runs r set due_at = now() + random() * interval '5 minutes'
where r.state = 2 and r.due_at > now() + interval '5 minutes' and exists (
  select from attempts a where a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at and a.number = r.attempt
    and not a.counted and (a.error = 'the tenant is paused' or a.error like 'calls to % are paused'));
