import { Type } from 'typebox'
import type { App } from '../app.ts'

const me = Type.Object(
  {
    tenant: Type.String(),
    tenantId: Type.Integer(),
    scopes: Type.Array(Type.String()),
    actor: Type.String({ description: 'How changes that this key makes are signed.' }),
    installation: Type.Boolean({ description: "Whether this is the installation's own key." }),
  },
  { title: 'WhoAmI' },
)

export function whoamiRoutes(app: App): void {
  app.get(
    '/v1/whoami',
    {
      config: { scope: 'read' },
      schema: { tags: ['API keys'], summary: 'See what the key you use may do', response: { 200: me } },
    },
    async ({ caller: { tenant, tenantId, scopes, actor, isInstallation } }) => ({
      tenant,
      tenantId,
      scopes: [...scopes],
      actor,
      installation: isInstallation,
    }),
  )
}
