/** All leases that are live in one snapshot of the tables, as rows and in receipts, with the keys they count for. */
export const leasedRuns = (schema: string) => `select r.shard, r.limit_key from ${schema}.runs r where r.state = 1
  union all
  select u.shard, u.limit_key from ${schema}.receipts c
  cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.limit_keys) as u (shard, job_id, nominal_at, limit_key)
  where not exists (select from ${schema}.attempts a
      where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = u.nominal_at and a.number = 1)
    and not exists (select from ${schema}.runs r
      where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at)`

/** Keys of which more runs are leased than may be, seen in one snapshot by a reader that takes no part. */
export const keysOverLimit = (schema: string) => `select l.name, l.max_running, count(*)::int as leased
  from (${leasedRuns(schema)}) r join ${schema}.limits l on l.shard = r.shard and l.kind = 0 and l.key = r.limit_key
  group by l.name, l.max_running having count(*) > l.max_running`
