import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { stats } from '../schemas/stats.ts'

const querystring = Type.Object(
  {
    of: Type.Optional(
      Type.Enum(['tenant', 'installation'], {
        description: "Whose; default the tenant's. The installation's only with its admin key.",
      }),
    ),
  },
  { additionalProperties: false },
)

export function statsRoutes(app: App): void {
  app.get(
    '/v1/stats',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Stats'],
        summary: 'How the work stands: runs by state, what ended lately, dead letters, what is due next',
        description: 'Each count looks at a bounded number of rows, and says whether that was all of them.',
        querystring,
        response: { 200: stats },
      },
    },
    ({ tenant, service, caller, query }) => {
      if (query.of !== 'installation') return tenant.stats.get()
      if (!caller.isInstallation)
        throw new BelfryError('forbidden', "only the installation's admin key may ask about all tenants")
      return service.admin.stats()
    },
  )
}
