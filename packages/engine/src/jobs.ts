import { checkedOptions, invalidArgument } from './call-options.ts'
import { Complaints, readText } from './input/read-fields.ts'
import type { JobStatus, Missed, Triggered } from './intake/job-changes.ts'
import type { JobInput, JobOfCall } from './intake/job-input.ts'
import { mergeUpdate } from './intake/merge-update.ts'
import { type Preview, type PreviewInput, previewSchedule } from './intake/preview-schedule.ts'
import type { Created } from './intake/put-prepared.ts'
import type { WhenFull } from './intake/room.ts'
import { type TriggerOptions, understandTrigger } from './intake/understand-trigger.ts'
import { queueKindOf } from './job/definition.ts'
import type { DescribedJob } from './lookup/describe-job.ts'
import { getDescribedJob } from './lookup/get-job.sql.ts'
import type { JobView } from './lookup/job-view.ts'
import { type ListJobs, listJobs } from './lookup/list-jobs.sql.ts'
import type { Engine } from './node/engine.ts'
import type { Canceled } from './promotion/stop-live.ts'
import { LibraryScope, OfScope, type Scope } from './scope.ts'
import { type CallerTransaction, inCallerTransaction } from './store/database.ts'
import type { Page } from './store/page.ts'

const MAX_REASON = 1_000
const LIST_OPTIONS = [
  ...(['tenant', 'status', 'queue', 'name', 'label', 'createdFrom', 'createdTo', 'nextRunFrom', 'nextRunTo'] as const),
  ...(['text', 'limit', 'cursor'] as const),
]

/** `tenant` instead of its number. */
export type OfTenant<Request> = Omit<Request, 'tenantId'> & { tenant?: string }

export interface CreateOptions {
  /** The caller's transaction, which the jobs join. */
  tx?: CallerTransaction
  /** What happens if too much waits in the queue or of the tenant: by default it is refused, unless the jobs join a transaction. */
  whenFull?: WhenFull
}

/** What changes jobs that are there. */
export class JobsOf<Whose extends Scope> extends OfScope<Whose> {
  /** No more runs; live ones are asked to stop, or with `running: 'finish'` left to finish. */
  async cancel(jobId: string, options: { running?: 'cancel' | 'finish' } = {}): Promise<Canceled> {
    const { running = 'cancel' } = checkedOptions(options, ['running'])
    if (running !== 'cancel' && running !== 'finish') throw invalidArgument('running', 'must be cancel or finish')
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.jobChanges.cancel(jobId, running, this.scope.actor)
  }

  /** No new runs until resumed; retries of existing ones go on. */
  async pause(jobId: string, options: { reason?: string } = {}): Promise<{ status: JobStatus }> {
    const reason = readReason(options)
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.jobChanges.pause(jobId, reason, this.scope.actor)
  }

  /** Goes on from now; or with `missed: 'catch_up'` makes up for what fell into the pause, as after an outage. */
  async resume(jobId: string, options: { missed?: Missed } = {}): Promise<{ status: JobStatus }> {
    const { missed = 'skip' } = checkedOptions(options, ['missed'])
    if (missed !== 'skip' && missed !== 'catch_up') throw invalidArgument('missed', 'must be skip or catch_up')
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.jobChanges.resume(jobId, this.scope.actor, missed)
  }

  /** One run now, beside the schedule; for it alone with another payload, or under another overlap policy. */
  async trigger(jobId: string, options: TriggerOptions = {}): Promise<Triggered> {
    const understood = understandTrigger(options)
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.jobChanges.trigger(jobId, this.scope.actor, understood)
  }

  /** `mustBeAt` throws if the job is at another version than the caller means. */
  protected async merge(
    jobId: string,
    patch: unknown,
    mustBeAt: (version: number) => void = () => {},
  ): Promise<{ version: number }> {
    await this.scope.mustOwnJob(jobId)
    const { jobChanges, registry, clock } = this.scope.engine
    return jobChanges.update(
      jobId,
      (definitionJson, nominalAt, version) => {
        mustBeAt(version)
        return mergeUpdate(definitionJson, patch, { now: clock.now(), nominalAt })
      },
      (job, tenantId) => registry.queueId(tenantId, job.queue, queueKindOf(job.definition)),
      this.scope.actor,
    )
  }
}

export class Jobs extends JobsOf<Scope> {
  constructor(engine: Engine) {
    super(new LibraryScope(engine))
  }

  /** Creates a job; resolves after its commit, or joins the caller's transaction. */
  async create(job: JobInput, options: CreateOptions = {}): Promise<Created> {
    const { tx, whenFull } = readCreateOptions(options)
    if (tx === undefined) return this.scope.engine.intake.create(job, {}, whenFull)
    const inside = inCallerTransaction(tx, this.scope.engine.db.schema)
    const [created] = await this.scope.engine.intake.createIn(inside, [job], whenFull)
    return created as Created
  }

  /** Creates up to 10,000 jobs, all or none, which may wait for each other by their refs. */
  async createMany(jobs: readonly JobOfCall[], options: CreateOptions = {}): Promise<Created[]> {
    const { tx, whenFull } = readCreateOptions(options)
    if (tx === undefined) return this.scope.engine.intake.createMany(jobs, {}, whenFull)
    return this.scope.engine.intake.createIn(inCallerTransaction(tx, this.scope.engine.db.schema), jobs, whenFull)
  }

  /** When a job with these fields would run; nothing is made. `tenant` says whose calendars are meant. */
  async preview(input: PreviewInput, options: { tenant?: string } = {}): Promise<Preview> {
    const { tenant = 'default' } = checkedOptions(options, ['tenant'])
    return previewSchedule(this.scope.engine, await this.scope.engine.registry.tenantId(tenant), input)
  }

  /** The job wherever it is: waiting, in flight or finished. Null: there is none. */
  get(jobId: string): Promise<DescribedJob | null> {
    return getDescribedJob(this.scope.engine.db, this.scope.engine, null, jobId)
  }

  /** Newest first, a page at a time. */
  async list(options: OfTenant<ListJobs> = {}): Promise<Page<JobView>> {
    const { tenant = 'default', ...request } = checkedOptions(options, LIST_OPTIONS)
    return listJobs(this.scope.engine.db, { ...request, tenantId: await this.scope.engine.registry.tenantId(tenant) })
  }

  /** Changes the fields that `patch` names. */
  update(jobId: string, patch: Partial<JobInput>): Promise<{ version: number }> {
    return this.merge(jobId, patch)
  }
}

function readCreateOptions(options: CreateOptions): CreateOptions {
  const { whenFull } = checkedOptions(options, ['tx', 'whenFull'])
  if (whenFull !== undefined && whenFull !== 'refuse' && whenFull !== 'accept')
    throw invalidArgument('whenFull', 'must be refuse or accept')
  return options
}

/** Why something is paused, as people write it. */
export function readReason(options: { reason?: string }): string | null {
  const { reason } = checkedOptions(options, ['reason'])
  if (reason === undefined) return null
  const complaints = new Complaints()
  readText(complaints, 'reason', reason, MAX_REASON)
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return reason
}
