/**
 * What a statement that ends runs adds, so that whoever waits for them is told: a row of `outbox` for each run that somebody
 * waits for, in the same commit, and nothing for all others. `ended` names the rows that are gone; its `number` and `outcome`
 * are written as the statement knows them. A run that is canceled, opened again and canceled once more before anybody was told
 * has one row, for its last end.
 */
export const tellDependents = (
  ended: string,
  { number, outcome }: { number: string; outcome: string | number },
): string =>
  `insert into belfry.outbox (nominal_at, job_id, number, shard, outcome, one_off)
     select e.nominal_at, e.job_id, ${number}, e.shard, ${outcome}, e.one_off from ${ended} e where e.has_dependents
     on conflict (shard, job_id, nominal_at, number) do update set outcome = excluded.outcome`
