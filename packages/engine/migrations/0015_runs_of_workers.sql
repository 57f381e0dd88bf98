-- Runs that remote workers hold, by the call that leased them. Without the state in its condition, which other indexes have, too: statements that
-- do not ask for it can only be carried out by this one, and not by a walk through everything that is leased.

drop index runs_of_worker;
create index runs_of_worker on runs (holder) where holder < 0;
