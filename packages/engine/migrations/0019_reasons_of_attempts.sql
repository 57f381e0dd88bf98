-- Why an attempt ended as it did, by code, where its outcome and failure class do not say it; people read `error`. `reason_at` is the
-- nominal time that came meanwhile, where that was the reason.

alter table attempts add column reason smallint, add column reason_at timestamptz(3);

-- Until now explain read these words.
update attempts set reason = case when error like 'superseded:%' then 1 when error like 'not needed:%' then 4 else 5 end
where number = 0 and outcome = 7 and failure_class is null
  and (error like 'superseded:%' or error like 'not needed:%' or error ~ '^(the only slot|all \d+ slots) of .* (was|were) taken$');
