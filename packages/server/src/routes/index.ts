import type { Clock } from '@belfry/engine'
import type { App } from '../app.ts'
import type { Limiter } from '../rate-limit.ts'
import type { Service } from '../service.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { backfillRoutes } from './backfills.ts'
import { calendarRoutes } from './calendars.ts'
import { callbackRoutes } from './callbacks.ts'
import { circuitRoutes } from './circuits.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { explainRoutes } from './explain.ts'
import { forecastRoutes } from './forecast.ts'
import { jobActionRoutes } from './job-actions.ts'
import { jobBatchRoutes } from './job-batches.ts'
import { jobChangeRoutes } from './job-changes.ts'
import { jobRunRoutes } from './job-runs.ts'
import { jobRoutes } from './jobs.ts'
import { leaseRoutes } from './leases.ts'
import { nodeRoutes } from './nodes.ts'
import { originRoutes } from './origins.ts'
import { pauseRoutes } from './pauses.ts'
import { payloadRoutes } from './payloads.ts'
import { queueScaleRoutes } from './queue-scale.ts'
import { queueRoutes } from './queues.ts'
import { runRoutes } from './runs.ts'
import { scheduleRoutes } from './schedules.ts'
import { secretRoutes } from './secrets.ts'
import { signingKeyRoutes } from './signing-keys.ts'
import { statsRoutes } from './stats.ts'
import { tenantRoutes } from './tenants.ts'
import { whoamiRoutes } from './whoami.ts'
import { workerRoutes } from './workers.ts'

export interface RouteDeps {
  limiter: Limiter
  clock: Clock
  /** For routes without a key, whose requests carry no engine. */
  service: () => Service | null
}

/** Every route of version 1, by resource. */
export function allRoutes(app: App, { limiter, clock, service }: RouteDeps): void {
  jobRoutes(app, limiter)
  jobBatchRoutes(app, limiter)
  jobChangeRoutes(app, limiter)
  jobActionRoutes(app)
  jobRunRoutes(app)
  backfillRoutes(app, limiter)
  explainRoutes(app)
  scheduleRoutes(app)
  runRoutes(app, clock)
  deadLetterRoutes(app)
  queueRoutes(app)
  queueScaleRoutes(app)
  pauseRoutes(app)
  calendarRoutes(app)
  leaseRoutes(app, service)
  workerRoutes(app)
  payloadRoutes(app)
  secretRoutes(app)
  signingKeyRoutes(app)
  circuitRoutes(app)
  originRoutes(app)
  callbackRoutes(app, service)
  statsRoutes(app)
  forecastRoutes(app)
  nodeRoutes(app)
  tenantRoutes(app)
  apiKeyRoutes(app)
  whoamiRoutes(app)
}
