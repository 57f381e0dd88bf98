/** Whether others wait for the job of `run`: one of them has an edge to it. What has left its row in `runs` finds `has_dependents` by this. */
export const isAwaited = (run: string): string =>
  `exists (select from belfry.edges e where e.shard = ${run}.shard and e.parent = ${run}.job_id offset 0)`
