import type { Forecast, ForecastRequest } from './lookup/forecasts.ts'
import { OfScope } from './scope.ts'
import type { TenantScope } from './tenant-scope.ts'

/** The coming load of a tenant. */
export class TenantForecast extends OfScope<TenantScope> {
  /** Of the coming 24 hours unless asked otherwise. */
  get(request: ForecastRequest = {}): Promise<Forecast> {
    const { fresh, caller, engine } = this.scope
    return engine.forecasts.get(fresh, caller.tenantId, request)
  }
}
