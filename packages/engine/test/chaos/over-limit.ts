/** Keys of which more runs are leased than may be, seen in one snapshot by a reader that takes no part. */
export const keysOverLimit = (schema: string) => `select l.name, l.max_running, count(*)::int as leased
  from ${schema}.runs r join ${schema}.limits l on l.shard = r.shard and l.kind = 0 and l.key = r.limit_key where r.state = 1
  group by l.name, l.max_running having count(*) > l.max_running`
