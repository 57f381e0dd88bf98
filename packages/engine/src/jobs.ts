import { checkedOptions, invalidArgument } from './call-options.ts'
import type { JobStatus, Missed, Triggered } from './intake/job-changes.ts'
import type { JobInput, JobOfCall } from './intake/job-input.ts'
import { mergeUpdate } from './intake/merge-update.ts'
import { type Preview, type PreviewInput, previewSchedule } from './intake/preview-schedule.ts'
import type { Created } from './intake/put-prepared.ts'
import type { WhenFull } from './intake/room.ts'
import { Complaints, readText } from './intake/understand-fields.ts'
import { type TriggerOptions, understandTrigger } from './intake/understand-trigger.ts'
import { queueKindOf } from './job/definition.ts'
import type { DescribedJob } from './lookup/describe-job.ts'
import { getDescribedJob } from './lookup/get-job.sql.ts'
import type { JobView } from './lookup/job-view.ts'
import { type ListJobs, listJobs } from './lookup/list-jobs.sql.ts'
import type { Engine } from './node/engine.ts'
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

export class Jobs {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Creates a job; resolves after its commit, or joins the caller's transaction. */
  async create(job: JobInput, options: CreateOptions = {}): Promise<Created> {
    const { tx, whenFull } = readCreateOptions(options)
    if (tx === undefined) return this.#engine.intake.create(job, {}, whenFull)
    const inside = inCallerTransaction(tx, this.#engine.db.schema)
    const [created] = await this.#engine.intake.createIn(inside, [job], whenFull)
    return created as Created
  }

  /** Creates up to 10,000 jobs, all or none, which may wait for each other by their refs. */
  async createMany(jobs: readonly JobOfCall[], options: CreateOptions = {}): Promise<Created[]> {
    const { tx, whenFull } = readCreateOptions(options)
    if (tx === undefined) return this.#engine.intake.createMany(jobs, {}, whenFull)
    return this.#engine.intake.createIn(inCallerTransaction(tx, this.#engine.db.schema), jobs, whenFull)
  }

  /** When a job with these fields would run; nothing is made. `tenant` says whose calendars are meant. */
  async preview(input: PreviewInput, options: { tenant?: string } = {}): Promise<Preview> {
    const { tenant = 'default' } = checkedOptions(options, ['tenant'])
    return previewSchedule(this.#engine, await this.#engine.registry.tenantId(tenant), input)
  }

  /** The job wherever it is: waiting, in flight or finished. Null: there is none. */
  get(jobId: string): Promise<DescribedJob | null> {
    return getDescribedJob(this.#engine.db, this.#engine, null, jobId)
  }

  /** Newest first, a page at a time. */
  async list(options: OfTenant<ListJobs> = {}): Promise<Page<JobView>> {
    const { tenant = 'default', ...request } = checkedOptions(options, LIST_OPTIONS)
    return listJobs(this.#engine.db, { ...request, tenantId: await this.#engine.registry.tenantId(tenant) })
  }

  /** Changes the fields that `patch` names. */
  update(jobId: string, patch: Partial<JobInput>): Promise<{ version: number }> {
    const { jobChanges, registry, clock } = this.#engine
    return jobChanges.update(
      jobId,
      (definitionJson, nominalAt) => mergeUpdate(definitionJson, patch, { now: clock.now(), nominalAt }),
      (job, tenantId) => registry.queueId(tenantId, job.queue, queueKindOf(job.definition)),
      'library',
    )
  }

  /** No more runs; live ones are asked to stop, or with `running: 'finish'` left to finish. */
  async cancel(jobId: string, options: { running?: 'cancel' | 'finish' } = {}): Promise<{ status: JobStatus }> {
    const { running = 'cancel' } = checkedOptions(options, ['running'])
    if (running !== 'cancel' && running !== 'finish') throw invalidArgument('running', 'must be cancel or finish')
    return this.#engine.jobChanges.cancel(jobId, running, 'library')
  }

  /** No new runs until resumed; retries of existing ones go on. */
  async pause(jobId: string, options: { reason?: string } = {}): Promise<{ status: JobStatus }> {
    const { reason } = checkedOptions(options, ['reason'])
    const complaints = new Complaints()
    if (reason !== undefined) readText(complaints, 'reason', reason, MAX_REASON)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    return this.#engine.jobChanges.pause(jobId, reason ?? null, 'library')
  }

  /** Goes on from now; or with `missed: 'catch_up'` makes up for what fell into the pause, as after an outage. */
  async resume(jobId: string, options: { missed?: Missed } = {}): Promise<{ status: JobStatus }> {
    return this.#engine.jobChanges.resume(jobId, 'library', readMissed(options))
  }

  /** One run now, beside the schedule; for it alone with another payload, or under another overlap policy. */
  async trigger(jobId: string, options: TriggerOptions = {}): Promise<Triggered> {
    return this.#engine.jobChanges.trigger(jobId, 'library', understandTrigger(options))
  }
}

function readCreateOptions(options: CreateOptions): CreateOptions {
  const { whenFull } = checkedOptions(options, ['tx', 'whenFull'])
  if (whenFull !== undefined && whenFull !== 'refuse' && whenFull !== 'accept')
    throw invalidArgument('whenFull', 'must be refuse or accept')
  return options
}

export function readMissed(options: { missed?: Missed }): Missed {
  const { missed = 'skip' } = checkedOptions(options, ['missed'])
  if (missed !== 'skip' && missed !== 'catch_up') throw invalidArgument('missed', 'must be skip or catch_up')
  return missed
}
