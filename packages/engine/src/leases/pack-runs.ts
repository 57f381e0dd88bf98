/** A receipt is worth it only for many: fewer keep rows of their own. */
export const MIN_PACKED = 100

/** How a statement writes the terms of its lease. */
export interface LeaseTexts {
  holder: string
  now: string
  leaseUntil: string
}

const NOTHING = { columns: '', values: '' }
const FURTHER = {
  recurring: NOTHING,
  'one-offs': NOTHING,
  'one-offs with keys': { columns: ', limit_keys', values: ', array_agg(p.limit_key)' },
}

/**
 * The text that puts the rows of `rows` into receipts, one per tenant (which is what a reader may see) and queue. They are
 * first attempts that may be repeated, and none has a timeout shorter than the lease.
 */
export const packRuns = (rows: string, { holder, now, leaseUntil }: LeaseTexts, kind: keyof typeof FURTHER): string =>
  `insert into belfry.receipts (holder, leased_at, lease_until, tenant_id, queue_id, one_off, job_ids, nominal_ats, due_ats, job_versions, timeouts_ms,
       run_shards, priorities, run_causes${FURTHER[kind].columns})
     select ${holder}::bigint, to_timestamp(${now}::float8 / 1000), to_timestamp(${leaseUntil}::float8 / 1000), p.tenant_id, p.queue_id,
       ${kind !== 'recurring'}, array_agg(p.job_id), array_agg(p.nominal_at), array_agg(p.due_at), array_agg(p.job_version), array_agg(p.timeout_ms),
       array_agg(p.shard), array_agg(p.priority), array_agg(p.cause)${FURTHER[kind].values}
     from ${rows} p group by p.tenant_id, p.queue_id`
