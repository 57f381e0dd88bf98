-- Why an attempt ended as it did, by code, where its outcome and failure class do not say it; people read `error`. `reason_at` is the
-- nominal time that came meanwhile, where that was the reason.

alter table attempts add column reason smallint, add column reason_at timestamptz(3);
