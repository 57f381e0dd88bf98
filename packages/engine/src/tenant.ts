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
export class Tenant {
  readonly jobs: TenantJobs
  readonly runs: TenantRuns
  readonly deadLetters: TenantDeadLetters
  readonly backfills: TenantBackfills
  readonly batches: TenantBatches
  readonly queues: TenantQueues
  readonly pauses: TenantPauses
  readonly origins: TenantOrigins
  readonly payloads: TenantPayloads
  readonly calendars: TenantCalendars
  readonly secrets: TenantSecrets
  readonly signingKeys: TenantSigningKeys
  readonly circuits: TenantCircuits
  readonly stats: TenantStats
  readonly forecast: TenantForecast
  readonly workers: TenantWorkers

  constructor(scope: TenantScope) {
    this.jobs = new TenantJobs(scope)
    this.runs = new TenantRuns(scope)
    this.deadLetters = new TenantDeadLetters(scope)
    this.backfills = new TenantBackfills(scope)
    this.batches = new TenantBatches(scope)
    this.queues = new TenantQueues(scope)
    this.pauses = new TenantPauses(scope)
    this.origins = new TenantOrigins(scope)
    this.payloads = new TenantPayloads(scope)
    this.calendars = new TenantCalendars(scope)
    this.secrets = new TenantSecrets(scope)
    this.signingKeys = new TenantSigningKeys(scope)
    this.circuits = new TenantCircuits(scope)
    this.stats = new TenantStats(scope)
    this.forecast = new TenantForecast(scope)
    this.workers = new TenantWorkers(scope)
  }
}
