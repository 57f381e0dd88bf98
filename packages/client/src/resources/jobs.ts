import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type {
  BatchJob,
  CreatedJob,
  DescribedJob,
  Explanation,
  GetJobs,
  GetJobsByJobIdChanges,
  GetJobsByJobIdExplain,
  GetJobsByJobIdRuns,
  InstantInput,
  Job,
  JobChange,
  JobInput,
  NamedJobInput,
  Page,
  PatchJobsByJobId,
  PostJobsActions,
  PostJobsBatch,
  PostJobsByJobIdCancel,
  PostJobsByJobIdPause,
  PostJobsByJobIdResume,
  PostJobsByJobIdTrigger,
  Preview,
  PreviewInput,
  PutJobsByNameByName,
  RunSummary,
} from '../wire.ts'

/** How long a key that we made must be known: longer than we go on repeating. */
const OWN_KEY_TTL = '1h'

type Patched<Fields> = { [Name in keyof Fields]?: Fields[Name] | null }

/** The fields of a job that change; null takes one away. */
export type JobPatch = Patched<PatchJobsByJobId['body']>

export interface UpdateOptions extends CallOptions {
  /** The `version` that the job must still have, else `version_mismatch`. */
  ifVersion?: number
}

/** What to run, and when. */
export class Jobs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers when the job is durable. A job without an `idempotencyKey` gets one, so that a repeated call makes one job. */
  create(job: JobInput, options: CallOptions = {}): Promise<CreatedJob> {
    const body = this.#isRepeated(options) ? this.#keyed(job) : job
    return this.#transport.call('POST /v1/jobs', { body }, { ...options, isRepeatable: isKeyed(body) })
  }

  /** Up to 10,000 jobs, all or none; answers one item per job, in the same order. */
  async createMany(jobs: readonly BatchJob[], options: CallOptions = {}): Promise<PostJobsBatch['response']['jobs']> {
    const body = { jobs: this.#isRepeated(options) ? jobs.map((job) => this.#keyed(job)) : [...jobs] }
    const nature = { ...options, isRepeatable: body.jobs.every(isKeyed) }
    return (await this.#transport.call('POST /v1/jobs/batch', { body }, nature)).jobs
  }

  /** The same as one group, which counts how its jobs end, and may have a job that runs when all have finished. */
  async createBatch(
    jobs: readonly BatchJob[],
    batch: NonNullable<PostJobsBatch['body']['batch']> = {},
    options: CallOptions = {},
  ): Promise<{ batchId: string; jobs: PostJobsBatch['response']['jobs'] }> {
    const isRepeated = this.#isRepeated(options)
    const { onFinish } = batch
    const last = onFinish === undefined || !isRepeated ? batch : { ...batch, onFinish: this.#keyed(onFinish) }
    const body = { jobs: isRepeated ? jobs.map((job) => this.#keyed(job)) : [...jobs], batch: last }
    const nature = { ...options, isRepeatable: body.jobs.every(isKeyed) && (!last.onFinish || isKeyed(last.onFinish)) }
    const made = await this.#transport.call('POST /v1/jobs/batch', { body }, nature)
    return { batchId: made.batchId as string, jobs: made.jobs }
  }

  /** Creates the job of this name, or makes the one that is there like this. */
  putByName(name: string, job: NamedJobInput, options?: CallOptions): Promise<PutJobsByNameByName['response']> {
    return this.#transport.call('PUT /v1/jobs/by-name/{name}', { path: { name }, body: job }, options)
  }

  /** When a job with these fields would run; nothing is made. */
  preview(body: PreviewInput, options?: CallOptions): Promise<Preview> {
    return this.#transport.call('POST /v1/schedules/preview', { body }, { ...options, isRepeatable: true })
  }

  get(jobId: string, options?: CallOptions): Promise<DescribedJob> {
    return this.#transport.call('GET /v1/jobs/{jobId}', { path: { jobId } }, options)
  }

  /** Newest first. */
  list(query: GetJobs['query'] = {}, options?: CallOptions): Pages<Job> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/jobs', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  /** What is due already stays due; a one-off that has become a run is refused with `already_due`. */
  update(jobId: string, patch: JobPatch, options: UpdateOptions = {}): Promise<PatchJobsByJobId['response']> {
    const { ifVersion, ...call } = options
    const headers = ifVersion === undefined ? {} : { 'If-Match': `"${ifVersion}"` }
    // The description cannot say that null is allowed everywhere; the engine takes it.
    const body = patch as PatchJobsByJobId['body']
    return this.#transport.call('PATCH /v1/jobs/{jobId}', { path: { jobId }, headers, body }, call)
  }

  /** No more runs; those alive are asked to stop, unless `running: 'finish'`. */
  cancel(
    jobId: string,
    body: NonNullable<PostJobsByJobIdCancel['body']> = {},
    options?: CallOptions,
  ): Promise<PostJobsByJobIdCancel['response']> {
    return this.#transport.call('POST /v1/jobs/{jobId}/cancel', { path: { jobId }, body }, options)
  }

  /** No new runs until resumed; retries go on. */
  pause(
    jobId: string,
    body: NonNullable<PostJobsByJobIdPause['body']> = {},
    options?: CallOptions,
  ): Promise<PostJobsByJobIdPause['response']> {
    return this.#transport.call('POST /v1/jobs/{jobId}/pause', { path: { jobId }, body }, options)
  }

  /** Goes on from now; with `missed: 'catch_up'` what fell into the pause is made up for, as after an outage. */
  resume(
    jobId: string,
    body: NonNullable<PostJobsByJobIdResume['body']> = {},
    options?: CallOptions,
  ): Promise<PostJobsByJobIdResume['response']> {
    return this.#transport.call('POST /v1/jobs/{jobId}/resume', { path: { jobId }, body }, options)
  }

  /** One run now, beside the schedule. Never repeated by itself: each call is a run. */
  trigger(
    jobId: string,
    body: NonNullable<PostJobsByJobIdTrigger['body']> = {},
    options?: CallOptions,
  ): Promise<PostJobsByJobIdTrigger['response']> {
    return this.#transport.call('POST /v1/jobs/{jobId}/trigger', { path: { jobId }, body }, options)
  }

  /** The job goes, its history stays. */
  delete(jobId: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/jobs/{jobId}', { path: { jobId } }, options)
  }

  runs(jobId: string, query: GetJobsByJobIdRuns['query'] = {}, options?: CallOptions): Pages<RunSummary> {
    return new Pages((cursor) => {
      const asked = cursor === undefined ? query : { ...query, cursor }
      return this.#transport.call('GET /v1/jobs/{jobId}/runs', { path: { jobId }, query: asked }, options)
    })
  }

  /** Who changed the job, and how. */
  changes(jobId: string, query: GetJobsByJobIdChanges['query'] = {}, options?: CallOptions): Pages<JobChange> {
    return new Pages((cursor) => {
      const asked = cursor === undefined ? query : { ...query, cursor }
      return this.#transport.call('GET /v1/jobs/{jobId}/changes', { path: { jobId }, query: asked }, options)
    })
  }

  /** What became of the job at an instant, or will, and why. */
  explain(jobId: string, at: InstantInput, options?: CallOptions): Promise<Explanation> {
    const asked = this.#transport.call('GET /v1/jobs/{jobId}/explain', { path: { jobId }, query: { at } }, options)
    return asked as Promise<Explanation>
  }

  /** The same for every nominal time in a range, oldest first. */
  explainRange(
    jobId: string,
    range: Omit<GetJobsByJobIdExplain['query'], 'at' | 'from' | 'to'> & { from: InstantInput; to: InstantInput },
    options?: CallOptions,
  ): Pages<Explanation> {
    return new Pages((cursor) => {
      const query = cursor === undefined ? range : { ...range, cursor }
      const asked = this.#transport.call('GET /v1/jobs/{jobId}/explain', { path: { jobId }, query }, options)
      return asked as Promise<Page<Explanation>>
    })
  }

  /** Does something to up to 1,000 jobs of a filter; send `nextCursor` back to go on. */
  actions(body: PostJobsActions['body'], options?: CallOptions): Promise<PostJobsActions['response']> {
    return this.#transport.call('POST /v1/jobs/actions', { body }, options)
  }

  #isRepeated({ retries = this.#transport.retries }: CallOptions): boolean {
    return retries > 0
  }

  #keyed<Input extends JobInput>(job: Input): Input {
    if (isKeyed(job)) return job
    return { ...job, idempotencyKey: this.#transport.uniqueId(), idempotencyTtl: job.idempotencyTtl ?? OWN_KEY_TTL }
  }
}

const isKeyed = (job: JobInput): boolean => job.idempotencyKey !== undefined
