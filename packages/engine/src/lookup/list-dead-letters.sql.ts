import { parseRunId, runIdOf, shardOfJob } from '../job/ids.ts'
import { FAILURE_CLASS, type FailureClass } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import {
  AFTER_ALL,
  checkWord,
  limitOf,
  MAX_SCANNED,
  type Page,
  type PageRequest,
  pageOf,
  readCursor,
  TIMESTAMP,
  UUID,
} from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { readRange, readTextFilter, type When } from './filter.ts'
import { causeOf, FAILURE_CLASSES, failureClassOf, type RunSummary } from './run-view.ts'

/** Of the row `d`, a dead letter of the tenant `$1`. */
const DEAD = columns({
  diedAt: column<Instant>('d.died_at'),
  jobId: column<string>('d.job_id'),
  nominalAt: column<Instant>('d.nominal_at'),
  dueAt: column<Instant>('d.due_at'),
  tenant: column<string | null>('(select n.name from belfry.tenants n where n.id = $1)'),
  queue: column<string | null>('(select q.name from belfry.queues q where q.id = d.queue_id)'),
  jobVersion: column<number>('d.job_version'),
  attempt: column<number>('d.attempt'),
  failures: column<number>('d.failures'),
  priority: column<number>('d.priority'),
  cause: column<number>('d.cause'),
  failureClass: column<number | null>('d.failure_class'),
  error: column<string | null>('d.error'),
})
type Row = RowOf<Read<typeof DEAD>>

/** By `dead_letters_by_tenant`, the latest death first, downwards from the cursor; the filters look at `$8` of them at most. */
const LIST = statement(
  'list_dead_letters',
  `with scanned as materialized (
     select d.died_at, d.job_id, d.nominal_at, d.due_at, d.queue_id, d.job_version, d.attempt, d.failures, d.priority, d.cause, d.failure_class, d.error
     from belfry.dead_letters d
     where d.tenant_id = $1 and d.died_at <= to_timestamp($2::float8 / 1000) and d.died_at >= to_timestamp($10::float8 / 1000)
       and d.died_at < to_timestamp($11::float8 / 1000)
       and (d.died_at, d.job_id, d.nominal_at) < (to_timestamp($2::float8 / 1000), $3::uuid, to_timestamp($4::float8 / 1000))
     order by d.died_at desc, d.job_id desc, d.nominal_at desc limit $8
   )
   select page.*, reached.died_at, reached.job_id, reached.nominal_at
   from (select) one
   left join lateral (
     select d.died_at, d.job_id, d.nominal_at from scanned d where (select count(*) from scanned) = $8
     order by d.died_at, d.job_id, d.nominal_at limit 1) reached on true
   left join lateral (
     select ${DEAD.text} from scanned d
     where ($5::text is null or d.queue_id in (select q.id from belfry.queues q where (q.tenant_id = $1 or q.shared) and q.name = $5))
       and ($6::smallint is null or d.failure_class = $6) and ($7::uuid is null or d.job_id = $7)
     order by d.died_at desc, d.job_id desc, d.nominal_at desc limit $9) page on true
   order by page.died_at desc, page.job_id desc, page.nominal_at desc`,
)

const GET = statement(
  'get_dead_letter',
  `select ${DEAD.text} from belfry.dead_letters d
   where d.shard = $2 and d.job_id = $3 and d.nominal_at = to_timestamp($4::float8 / 1000) and d.tenant_id = $1`,
)

type OfRun = 'jobId' | 'tenant' | 'queue' | 'nominalAt' | 'dueAt' | 'attempt' | 'failures' | 'cause' | 'jobVersion'

export interface DeadLetterView extends Pick<RunSummary, OfRun | 'failureClass' | 'error'> {
  runId: string
  diedAt: Date
  priority: number
}

export interface ListDeadLetters extends PageRequest {
  tenantId: number
  queue?: string
  failureClass?: FailureClass
  jobId?: string
  /** When it died. */
  from?: When
  to?: When
}

/** Where the scan stopped, if there may be more behind it. */
type Reached = [diedAt: Instant, jobId: string, nominalAt: Instant] | [null]

export async function listDeadLetters(db: Queryable, request: ListDeadLetters): Promise<Page<DeadLetterView>> {
  const { tenantId, failureClass, jobId } = request
  checkWord('failureClass', failureClass, FAILURE_CLASSES)
  const limit = limitOf(request)
  const queue = readTextFilter('queue', request.queue)
  const { from, to } = readRange(request)
  const [diedAt, atJobId, nominalAt] = readCursor(request, [TIMESTAMP, UUID, TIMESTAMP]) ?? [
    'Infinity',
    AFTER_ALL,
    'Infinity',
  ]
  if (jobId !== undefined && !UUID.test(jobId)) return { items: [], nextCursor: null }
  const isFiltered = queue !== null || failureClass !== undefined || jobId !== undefined
  const rows = await db.query<Row>(LIST, [
    tenantId,
    Number(diedAt),
    atJobId,
    Number(nominalAt),
    queue,
    failureClass === undefined ? null : FAILURE_CLASS[failureClass],
    jobId ?? null,
    isFiltered ? MAX_SCANNED : limit + 1,
    limit + 1,
    from,
    to,
  ])
  const found = rows.filter((row) => DEAD.get(row, 'jobId') !== null).map(deadLetterOf)
  const reached = rows[0] === undefined ? [null] : (DEAD.behind(rows[0]) as Reached)
  const stoppedAt = reached[0] === null ? null : (reached as Exclude<Reached, [null]>)
  return pageOf(found, limit, (last) => [last.diedAt.getTime(), last.jobId, last.nominalAt.getTime()], stoppedAt)
}

/** Null: the tenant has no such dead letter. */
export async function getDeadLetter(db: Queryable, tenantId: number, runId: string): Promise<DeadLetterView | null> {
  const run = parseRunId(runId)
  if (run === null) return null
  const [row] = await db.query<Row>(GET, [tenantId, shardOfJob(run.jobId), run.jobId, run.nominalAt])
  return row === undefined ? null : deadLetterOf(row)
}

function deadLetterOf(row: Row): DeadLetterView {
  const { jobId, nominalAt, tenant, queue, cause, failureClass, ...dead } = DEAD.read(row)
  return {
    runId: runIdOf(jobId, nominalAt),
    jobId,
    ...dead,
    tenant: tenant ?? '',
    queue: queue ?? '',
    nominalAt: new Date(nominalAt),
    dueAt: new Date(dead.dueAt),
    diedAt: new Date(dead.diedAt),
    cause: causeOf(cause),
    failureClass: failureClassOf(failureClass),
  }
}
