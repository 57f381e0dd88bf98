import { createdAtOf, isJobId, shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { INSTANT, limitOf, type Page, type PageRequest, readCursor, TIMESTAMP, writeCursor } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { SUBJECT, type Subject } from './record-change.sql.ts'

export interface ListChanges extends PageRequest {
  tenantId: number
  subject: Subject
  subjectId: string
}

export interface ChangeView {
  changedAt: Date
  subject: Subject
  subjectId: string
  action: string
  actor: string
  /** Null: there was nothing before, or it does not matter. */
  before: unknown
  after: unknown
}

/** Nothing of a job was changed before it was created; one day of slack is for clocks. */
const SLACK_MS = 86_400_000

const LIST = statement(
  'list_changes',
  `select c.changed_at, (extract(epoch from c.written_at) * 1000000)::bigint, c.action, c.actor, c.before, c.after
   from belfry.job_changes c
   where c.tenant_id = $1 and c.subject = $2 and c.subject_id = $3 and c.changed_at >= to_timestamp($4::float8 / 1000)
     and (c.changed_at, c.written_at) > (to_timestamp($4::float8 / 1000), timestamptz 'epoch' + $5::bigint * interval '1 microsecond')
   order by c.changed_at, c.written_at limit $6`,
)
/** The definition that the job was created with: what its first update replaced, else the one it still has. */
const CREATED = statement(
  'created_job',
  `select d.definition, u.before from (
     select j.definition from belfry.jobs j where j.shard = $1 and j.id = $2 and j.tenant_id = $3
     union all
     select s.definition from belfry.specs s where s.shard = $1 and s.job_id = $2 and s.tenant_id = $3
   ) d left join lateral (
     select c.before from belfry.job_changes c
     where c.tenant_id = $3 and c.subject = ${SUBJECT.job} and c.subject_id = $2::uuid::text and c.action = 'update' and c.changed_at >= to_timestamp($4::float8 / 1000)
     order by c.changed_at, c.written_at limit 1
   ) u on true`,
)

const parsed = (json: string | null): unknown => (json === null ? null : JSON.parse(json))

/** Oldest first, a page at a time. A job's begins with its creation, which leaves no row: its definition says who. */
export async function listChanges(db: Queryable, request: ListChanges): Promise<Page<ChangeView>> {
  const { tenantId, subject, subjectId } = request
  const limit = limitOf(request)
  const cursor = readCursor(request, [TIMESTAMP, INSTANT])
  const isJob = subject === 'job' && isJobId(subjectId)
  const since = isJob ? createdAtOf(subjectId) - SLACK_MS : 0
  const [after, writtenAfter] = cursor ?? [since, 0]
  const created = isJob && cursor === null ? await creationOf(db, tenantId, subjectId, since) : null
  const rows = await db.query<[Instant, string, string, string, string | null, string | null]>(LIST, [
    tenantId,
    SUBJECT[subject],
    subjectId,
    after,
    writtenAfter,
    limit + 1,
  ])
  const shown = created === null ? limit : limit - 1
  const items = rows.slice(0, shown).map(([changedAt, , action, actor, before, after]) => ({
    changedAt: new Date(changedAt),
    subject,
    subjectId,
    action,
    actor,
    before: parsed(before),
    after: parsed(after),
  }))
  const last = rows[shown - 1]
  const nextCursor = rows.length > shown ? writeCursor([last?.[0] ?? since, last?.[1] ?? 0]) : null
  return { items: created === null ? items : [created, ...items], nextCursor }
}

async function creationOf(db: Queryable, tenantId: number, jobId: string, since: Instant): Promise<ChangeView | null> {
  const [row] = await db.query<[string, string | null]>(CREATED, [shardOfJob(jobId), jobId, tenantId, since])
  if (!row) return null
  const definition = JSON.parse(row[1] ?? row[0]) as { createdBy?: unknown }
  const { createdBy } = definition
  return {
    changedAt: new Date(createdAtOf(jobId)),
    subject: 'job',
    subjectId: jobId,
    action: 'create',
    actor: typeof createdBy === 'string' ? createdBy : 'library',
    before: null,
    after: definition,
  }
}
