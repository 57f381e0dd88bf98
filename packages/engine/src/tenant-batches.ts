import { type BatchView, getBatch } from './dependencies/batches.sql.ts'
import type { CreatedBatch } from './intake/intake.ts'
import type { BatchOptions } from './intake/understand-batch.ts'
import { OfScope } from './scope.ts'
import { admitJobs } from './tenant-admission.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** A tenant's batches. */
export class TenantBatches extends OfScope<TenantScope> {
  /** Up to 10,000 jobs, all or none, and the job that runs when all of them have finished. */
  async create(jobs: unknown, options: BatchOptions): Promise<CreatedBatch> {
    const { engine, caller } = this.scope
    await admitJobs(
      this.scope,
      Array.isArray(jobs) ? [...jobs, ...('onFinish' in options ? [options.onFinish] : [])] : [],
    )
    return engine.intake.createBatch(jobs, options, { tenant: caller.tenant, createdBy: caller.actor })
  }

  async get(batchId: string): Promise<BatchView> {
    const { fresh, caller } = this.scope
    const batch = await getBatch(fresh, caller.tenantId, batchId)
    if (batch === null) throw noSuch('batch', batchId)
    return batch
  }
}
