import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type {
  Backfill,
  BackfillPreview,
  CreatedBackfill,
  GetJobsByJobIdBackfills,
  PostJobsByJobIdBackfill,
} from '../wire.ts'

/** Which times, and how many at once. */
export type BackfillInput = Omit<PostJobsByJobIdBackfill['body'], 'dryRun'>

/** Times of schedules that have passed, made into runs. */
export class Backfills {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** What `create` would do with the same arguments; it does nothing. */
  async preview(jobId: string, input: BackfillInput, options: CallOptions = {}): Promise<BackfillPreview> {
    const body = { ...input, dryRun: true }
    const nature = { ...options, isRepeatable: true }
    return (await this.#transport.call(
      'POST /v1/jobs/{jobId}/backfill',
      { path: { jobId }, body },
      nature,
    )) as BackfillPreview
  }

  /** Runs the times in [from, to) that have no run. Never repeated by itself: of two, the second leaves out what the first made. */
  async create(jobId: string, input: BackfillInput, options?: CallOptions): Promise<CreatedBackfill> {
    return (await this.#transport.call(
      'POST /v1/jobs/{jobId}/backfill',
      { path: { jobId }, body: input },
      options,
    )) as CreatedBackfill
  }

  /** Those of a job, latest first. */
  list(jobId: string, query: GetJobsByJobIdBackfills['query'] = {}, options?: CallOptions): Pages<Backfill> {
    return new Pages((cursor) => {
      const asked = cursor === undefined ? query : { ...query, cursor }
      return this.#transport.call('GET /v1/jobs/{jobId}/backfills', { path: { jobId }, query: asked }, options)
    })
  }

  get(backfillId: string, options?: CallOptions): Promise<Backfill> {
    return this.#transport.call('GET /v1/backfills/{backfillId}', { path: { backfillId } }, options)
  }

  /** No more runs of it; those alive are asked to stop. */
  cancel(backfillId: string, options?: CallOptions): Promise<Backfill> {
    return this.#transport.call('POST /v1/backfills/{backfillId}/cancel', { path: { backfillId } }, options)
  }
}
