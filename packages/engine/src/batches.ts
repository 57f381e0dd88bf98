import { checkedOptions } from './call-options.ts'
import { type BatchView, getBatch } from './dependencies/batches.sql.ts'
import type { CreatedBatch } from './intake/intake.ts'
import type { JobInput, JobOfCall } from './intake/job-input.ts'
import { OfLibrary } from './scope.ts'

/** Groups of jobs that are created together, and counted together. */
export class Batches extends OfLibrary {
  /** Creates up to 10,000 jobs, all or none, and the job that runs when all of them have finished. */
  async create(
    jobs: readonly JobOfCall[],
    options: { name?: string; onFinish?: JobInput } = {},
  ): Promise<CreatedBatch> {
    return this.scope.engine.intake.createBatch(jobs, checkedOptions(options, ['name', 'onFinish']))
  }

  /** How many of its jobs are open, and how the others ended. Null: there is no such batch. */
  get(batchId: string): Promise<BatchView | null> {
    return getBatch(this.scope.engine.db, null, batchId)
  }
}
