import { type ChangeView, listChanges } from './audit/list-changes.sql.ts'
import { checkedOptions } from './call-options.ts'
import { BelfryError, refusal } from './errors.ts'
import { isRecord } from './input/read-fields.ts'
import type { Description } from './intake/describe-when.ts'
import { shownHttp } from './intake/http-input.ts'
import { type Preview, previewSchedule } from './intake/preview-schedule.ts'
import type { Created } from './intake/put-prepared.ts'
import type { HttpTarget } from './job/definition.ts'
import { JobsOf } from './jobs.ts'
import type { DescribedJob } from './lookup/describe-job.ts'
import type { Explanation } from './lookup/explanation.ts'
import type { When } from './lookup/filter.ts'
import { getDescribedJob } from './lookup/get-job.sql.ts'
import type { JobViewStatus } from './lookup/job-places.sql.ts'
import type { JobView } from './lookup/job-view.ts'
import { type ListJobs, listJobs } from './lookup/list-jobs.sql.ts'
import type { Page, PageRequest } from './store/page.ts'
import { admitJobs } from './tenant-admission.ts'
import { type ExplainRange, explainMany, explainOne } from './tenant-explain.ts'
import { type Hint, hintsFor } from './tenant-hints.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'
import { type Upserted, upsertJob } from './tenant-upsert.ts'

const GONE: Description = { understoodAs: 'never: the job was deleted', expression: null, timezone: 'UTC', times: [] }

/** What was made, and when it runs. */
export interface CreatedJob extends Description {
  jobId: string
  /** The job was there: of the same request, or of the same unique key. */
  deduplicated: boolean
  /** The job was there, had not started, and has become what was asked for. */
  replaced?: true
  status: JobViewStatus
  nextRunAt: Date | null
  /** What would be better, if there is something. */
  hints?: Hint[]
}

/** A tenant's jobs. */
export class TenantJobs extends JobsOf<TenantScope> {
  /** Answers after the commit. */
  async create(job: unknown, options: { idempotencyKey?: string } = {}): Promise<CreatedJob> {
    const { idempotencyKey } = checkedOptions(options, ['idempotencyKey'])
    const keyed = withKey(job, idempotencyKey)
    await admitJobs(this.scope, [keyed])
    const { created, description } = await this.scope.engine.intake.createDescribed(keyed, this.#creator)
    const { jobId, deduplicated, nextRunAt, ...replaced } = created
    if (description !== null) {
      const { expression, times } = description
      const isRecurring = expression !== null && expression !== times[0]?.utc
      const hints = await hintsFor(this.scope, keyed, { jobId, nextRunAt, isRecurring })
      const made = { jobId, deduplicated, status: 'active' as const, nextRunAt, ...description }
      return hints.length === 0 ? made : { ...made, hints }
    }
    const known = await this.#described(jobId)
    // Deleted since: the key is still used up.
    if (known === null) return { jobId, deduplicated, ...replaced, status: 'canceled', nextRunAt: null, ...GONE }
    const { status, understoodAs, expression, timezone, times } = known
    const described = { status, nextRunAt: known.nextRunAt, understoodAs, expression, timezone, times }
    return { jobId, deduplicated, ...replaced, ...described }
  }

  /** When a job with these fields would run; nothing is made. */
  preview(input: unknown): Promise<Preview> {
    return previewSchedule(this.scope.engine, this.scope.caller.tenantId, input)
  }

  /** Up to 10,000, all or none. */
  async createMany(jobs: unknown): Promise<Created[]> {
    await admitJobs(this.scope, Array.isArray(jobs) ? jobs : [])
    return this.scope.engine.intake.createMany(jobs, this.#creator)
  }

  /** The job wherever it is: waiting, in flight or finished. */
  async get(jobId: string): Promise<DescribedJob> {
    const job = await this.#described(jobId)
    if (job === null) throw noSuch('job', jobId)
    return job
  }

  #described(jobId: string): Promise<DescribedJob | null> {
    const { fresh, caller, engine } = this.scope
    return getDescribedJob(fresh, engine, caller.tenantId, jobId)
  }

  /** Newest first, a page at a time. */
  async list(filter: Omit<ListJobs, 'tenantId'> = {}): Promise<Page<JobView>> {
    const { tenantId } = this.scope.caller
    return this.scope.page((db) => listJobs(db, { ...filter, tenantId }))
  }

  /** Creates the job of this name, or makes it as the input says; nothing is written if it is so already. */
  upsert(name: string, job: unknown): Promise<Upserted> {
    return upsertJob(this.scope, name, job)
  }

  /** Changes the fields that `patch` names; with `ifVersion` only if nobody else did since. */
  update(jobId: string, patch: unknown, { ifVersion }: { ifVersion?: number } = {}): Promise<{ version: number }> {
    return this.merge(jobId, patch, (version) => {
      if (ifVersion !== undefined && ifVersion !== version)
        throw new BelfryError('version_mismatch', `job ${jobId} is at version ${version}, not ${ifVersion}`)
    })
  }

  /** No more runs, and nobody finds the job any more; its history stays. */
  async delete(jobId: string): Promise<void> {
    await this.scope.mustOwnJob(jobId)
    await this.scope.engine.jobChanges.delete(jobId, this.scope.caller.actor)
  }

  /** What became of the job at an instant, or will, and why; without one, in this minute. */
  explain(jobId: string, at?: When): Promise<Explanation> {
    return explainOne(this.scope, jobId, at)
  }

  /** The same for every nominal time in a range, oldest first, a page at a time. */
  explainRange(jobId: string, range: ExplainRange): Promise<Page<Explanation>> {
    return explainMany(this.scope, jobId, range)
  }

  /** Who changed what, oldest first. */
  async changes(jobId: string, page: PageRequest = {}): Promise<Page<ChangeView>> {
    await this.scope.mustOwnJob(jobId)
    const { tenantId } = this.scope.caller
    const found = await this.scope.page((db) =>
      listChanges(db, { ...page, tenantId, subject: 'job', subjectId: jobId }),
    )
    return { ...found, items: found.items.map(shownChange) }
  }

  get #creator(): { tenant: string; createdBy: string } {
    const { tenant, actor } = this.scope.caller
    return { tenant, createdBy: actor }
  }
}

/** A definition is kept whole, and shown without a secret that stands in it. */
function shownChange({ before, after, ...change }: ChangeView): ChangeView {
  return { ...change, before: shownDefinition(before), after: shownDefinition(after) }
}

function shownDefinition(value: unknown): unknown {
  if (!isRecord(value) || !isRecord(value.http)) return value
  return { ...value, http: shownHttp(value.http as unknown as HttpTarget) }
}

/** The key may stand in the request or beside it; two different ones are a mistake of the caller. */
function withKey(job: unknown, idempotencyKey: string | undefined): unknown {
  if (idempotencyKey === undefined || !isRecord(job)) return job
  const { idempotencyKey: inside } = job
  if (inside !== undefined && inside !== idempotencyKey) {
    const message = 'differs from the Idempotency-Key beside the request: give one of them'
    throw refusal('invalid_request', 'idempotencyKey', message, `idempotencyKey ${message}`)
  }
  return { ...job, idempotencyKey }
}
