import { keyLimitOf, putKeyLimits } from '../concurrency/key-limits.sql.ts'
import type { ResolvedSpec } from '../job/definition.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { noTenant } from '../shards/registry.sql.ts'
import type { Database, Queryable } from '../store/database.ts'
import { whileSending } from '../store/while-sending.ts'
import { type Key, keyText } from './keys.sql.ts'
import {
  livingTenants,
  type NewOneOff,
  type NewRecurring,
  type PutJobs,
  putDelayed,
  putImmediate,
  putRecurring,
  type Sending,
} from './put-jobs.sql.ts'
import type { UnderstoodJob } from './understand-job.ts'

export const MAX_BATCH = 1_000
const MAX_BATCH_BYTES = 8 * 1024 * 1024

export interface Created {
  jobId: string
  /** The job was there: of the same request, or of the same unique key. */
  deduplicated: boolean
  /** The job was there, had not started, and has become what was asked for. */
  replaced?: true
  /** Its local name in the call that made it. */
  ref?: string
  /** The first nominal time; null if the job waits for others, or was there already and may be anywhere. */
  nextRunAt: Date | null
}

/** A job that has its id and its place. */
export interface Prepared {
  job: NewOneOff | NewRecurring
  keys: readonly Key[]
  understood: UnderstoodJob
  /** Of a recurring job: its schedule, standing on its own. */
  schedule: ResolvedSpec | null
}

export const createdOf = ({ job }: Prepared): Created => ({
  jobId: job.jobId,
  deduplicated: false,
  nextRunAt: firstTimeOf(job),
})

/** Who waits for others has no time of its own. */
function firstTimeOf(job: Prepared['job']): Date | null {
  if (job.kind === 'recurring') return job.nominalAt === null ? null : new Date(job.nominalAt)
  return job.state === RUN_STATE.dependent ? null : new Date(job.dueAt)
}

const NONE: ReadonlySet<number> = new Set()

/**
 * Inserts jobs that have their ids; in chunks, each bounded in number and bytes. Answers the tenants that are gone, whose jobs
 * were left out.
 */
async function putPrepared(
  db: Queryable,
  prepared: readonly Prepared[],
  now: Instant,
  sending: Sending = 'again',
): Promise<ReadonlySet<number>> {
  const gone = await putJobs(db, prepared, now, sending)
  const limits = prepared.flatMap(({ job, understood }) =>
    job.limitKey === null ? [] : (keyLimitOf(understood.definition, job) ?? []),
  )
  // What the jobs say of their limits comes with them, and last: it may be waited for.
  await putKeyLimits(db, limits, now)
  return gone
}

/** The rows of other transactions that these jobs may have to wait for: their keys, and the limits that they share. */
export const rowsOf = (prepared: readonly Prepared[]): string[] =>
  prepared.flatMap(({ job, keys }) => [
    ...keys.map((key) => `key ${keyText(key)}`),
    ...(job.limitKey === null ? [] : [`limit ${job.shard} ${job.limitKey}`]),
  ])

async function putJobs(
  db: Queryable,
  prepared: readonly Prepared[],
  now: Instant,
  sending: Sending,
): Promise<ReadonlySet<number>> {
  let made = 0
  await whileSending(putsOf(prepared, now, sending), async (put) => {
    made += await put(db)
  })
  if (made === prepared.length) return NONE
  const jobs = prepared.map(({ job }) => job)
  const living = await livingTenants(db, jobs)
  return new Set(jobs.map(({ tenantId }) => tenantId).filter((tenantId) => !living.has(tenantId)))
}

function* putsOf(prepared: readonly Prepared[], now: Instant, sending: Sending): Generator<PutJobs> {
  for (const chunk of chunksOf(prepared)) {
    const immediate: NewOneOff[] = []
    const delayed: NewOneOff[] = []
    const recurring: NewRecurring[] = []
    for (const { job } of chunk.sort(inOrder)) {
      if (job.kind === 'recurring') recurring.push(job)
      else if (job.kind === 'delayed') delayed.push(job)
      else immediate.push(job)
    }
    if (immediate.length > 0) yield putImmediate(immediate, now, sending)
    if (delayed.length > 0) yield putDelayed(delayed, now, sending)
    if (recurring.length > 0) yield putRecurring(recurring, now)
  }
}

/** Alone where nothing of it is waited for, else in a transaction of callers. Answers as `putPrepared`. */
export function putSingly(
  db: Database,
  prepared: readonly Prepared[],
  now: Instant,
  sending: Sending,
): Promise<ReadonlySet<number>> {
  const rows = rowsOf(prepared)
  return rows.length === 0
    ? putPrepared(db, prepared, now, sending)
    : db.callers.transactionOn(rows, (tx) => putPrepared(tx, prepared, now, sending))
}

/** For calls that are done as a whole: puts all of them, or throws. */
export async function putAll(
  db: Queryable,
  prepared: readonly Prepared[],
  now: Instant,
  sending: Sending,
): Promise<void> {
  const gone = await putPrepared(db, prepared, now, sending)
  if (gone.size === 0) return
  const lost = prepared.find(({ job }) => gone.has(job.tenantId)) as Prepared
  throw noTenant(lost.understood.tenant)
}

/** As the tables are: what is inserted together lies together. */
const inOrder = ({ job: a }: Prepared, { job: b }: Prepared): number =>
  a.shard - b.shard || (a.jobId < b.jobId ? -1 : 1)

function* chunksOf(prepared: readonly Prepared[]): Generator<Prepared[]> {
  let chunk: Prepared[] = []
  let bytes = 0
  for (const item of prepared) {
    const size = item.job.definitionJson.length
    if (chunk.length > 0 && (chunk.length >= MAX_BATCH || bytes + size > MAX_BATCH_BYTES)) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(item)
    bytes += size
  }
  if (chunk.length > 0) yield chunk
}
