import type { App } from '../app.ts'
import type { Limiter } from '../rate-limit.ts'
import { jobRoutes } from './jobs.ts'

export interface RouteDeps {
  limiter: Limiter
}

/** Every route of version 1, by resource. */
export function allRoutes(app: App, { limiter }: RouteDeps): void {
  jobRoutes(app, limiter)
}
