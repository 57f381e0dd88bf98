import { OfScope } from './scope.ts'
import { TenantBackfills } from './tenant-backfills.ts'
import { TenantBatches } from './tenant-batches.ts'
import { TenantCalendars } from './tenant-calendars.ts'
import { TenantDeadLetters } from './tenant-dead-letters.ts'
import { TenantForecast } from './tenant-forecast.ts'
import { TenantJobs } from './tenant-jobs.ts'
import { TenantOrigins } from './tenant-origins.ts'
import { TenantPauses } from './tenant-pauses.ts'
import { TenantQueues } from './tenant-queues.ts'
import { TenantRuns } from './tenant-runs.ts'
import type { TenantScope } from './tenant-scope.ts'
import { TenantCircuits, TenantPayloads, TenantSecrets, TenantSigningKeys } from './tenant-sealed.ts'
import { TenantStats } from './tenant-stats.ts'
import { TenantWorkers } from './tenant-workers.ts'

/**
 * Belfry as one tenant sees it, for one caller: what the HTTP server calls. Every id is looked at with the tenant's eyes;
 * another tenant's is answered like one that does not exist. Reads run under row-level security, as a second wall.
 */
export class Tenant extends OfScope<TenantScope> {
  readonly jobs = new TenantJobs(this.scope)
  readonly runs = new TenantRuns(this.scope)
  readonly deadLetters = new TenantDeadLetters(this.scope)
  readonly backfills = new TenantBackfills(this.scope)
  readonly batches = new TenantBatches(this.scope)
  readonly queues = new TenantQueues(this.scope)
  readonly pauses = new TenantPauses(this.scope)
  readonly origins = new TenantOrigins(this.scope)
  readonly payloads = new TenantPayloads(this.scope)
  readonly calendars = new TenantCalendars(this.scope)
  readonly secrets = new TenantSecrets(this.scope)
  readonly signingKeys = new TenantSigningKeys(this.scope)
  readonly circuits = new TenantCircuits(this.scope)
  readonly stats = new TenantStats(this.scope)
  readonly forecast = new TenantForecast(this.scope)
  readonly workers = new TenantWorkers(this.scope)
}
