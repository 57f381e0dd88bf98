-- breaking
-- What a run says of its lease, so that an attempt that never began is told from one that did. An older program would leave the marks of an
-- earlier attempt, and end attempts that never began.

-- When the work of the attempt began. Written before it begins where no further attempt may follow; null: nobody said that it began.
alter table runs add column begun_at timestamptz(3);
-- What its target answered, which reports the end of the attempt later.
alter table runs add column status_code smallint;
-- Why its last attempt that counted failed.
alter table runs add column failure_class smallint;
