import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { forecast } from '../schemas/forecast.ts'
import { instantText } from '../schemas/page.ts'

const querystring = Type.Object(
  {
    from: Type.Optional(instantText('The first minute; default now.')),
    to: Type.Optional(instantText('The end; default 24 hours later. Both lie within the coming 7 days.')),
    of: Type.Optional(
      Type.Enum(['tenant', 'installation'], {
        description: "Whose; default the tenant's. The installation's only with its admin key.",
      }),
    ),
  },
  { additionalProperties: false },
)

export function forecastRoutes(app: App): void {
  app.get(
    '/v1/forecast',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Stats'],
        summary: 'The coming load: how many runs are expected in each minute, by queue and by origin',
        description:
          'Counts the fire times of all jobs that are not paused, as they stood at `asOf`. Retries, triggers and runs that overlap are not known before they happen.',
        querystring,
        response: { 200: forecast },
      },
    },
    ({ tenant, service, caller, query: { of, ...range } }) => {
      if (of !== 'installation') return tenant.forecast.get(range)
      if (!caller.isInstallation)
        throw new BelfryError('forbidden', "only the installation's admin key may ask about all tenants")
      return service.forecast(range)
    },
  )
}
