import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { GetRuns, LogLine, PostRunsByRunIdCancel, PostRunsByRunIdRetry, Run, RunSummary } from '../wire.ts'

export interface GetRunOptions extends CallOptions {
  /** Answer when the run has finished, or after this time as it then is; at most 30,000. */
  waitMs?: number
}

/** The occurrences of jobs, live and past. */
export class Runs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  get(runId: string, options: GetRunOptions = {}): Promise<Run> {
    const { waitMs } = options
    const query = waitMs === undefined ? {} : { waitMs }
    return this.#transport.call('GET /v1/runs/{runId}', { path: { runId }, query }, options)
  }

  /** Live ones first, then the latest end first. */
  list(query: GetRuns['query'] = {}, options?: CallOptions): Pages<RunSummary> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/runs', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  /** What its attempts logged, oldest first. */
  logs(runId: string, options?: CallOptions): Pages<LogLine, { items: LogLine[] }> {
    return new Pages(() => this.#transport.call('GET /v1/runs/{runId}/logs', { path: { runId } }, options))
  }

  /** One that is being performed is asked to stop. */
  cancel(runId: string, options?: CallOptions): Promise<PostRunsByRunIdCancel['response']> {
    return this.#transport.call('POST /v1/runs/{runId}/cancel', { path: { runId } }, options)
  }

  /** Opens a failed or lost run again: same id, new attempts. */
  retry(runId: string, options?: CallOptions): Promise<PostRunsByRunIdRetry['response']> {
    return this.#transport.call('POST /v1/runs/{runId}/retry', { path: { runId } }, options)
  }
}
