import { Type } from 'typebox'
import type { App } from '../app.ts'
import { readDuration } from '../duration.ts'
import { instant, nullable } from '../schemas/page.ts'
import { optionalBody } from '../validation.ts'

const tags = ['Signing keys']
const MAX_OVERLAP_MS = 30 * 86_400_000
const DEFAULT_OVERLAP = 'P1D'

const signingKey = Type.Object(
  {
    id: Type.String(),
    createdAt: instant('When it was made.'),
    expiresAt: nullable(instant('Until when requests are signed with it too; null: no end.')),
    secret: Type.String({ description: 'What a Standard Webhooks library takes.', examples: ['whsec_…'] }),
  },
  { title: 'SigningKey' },
)
const keys = Type.Object({ items: Type.Array(signingKey) })

/** Whoever knows these secrets can pretend to be Belfry, so that they are not for every reader. */
export function signingKeyRoutes(app: App): void {
  app.get(
    '/v1/signing-keys',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'See the keys that requests to targets are signed with', response: { 200: keys } },
    },
    async ({ tenant }) => ({ items: await tenant.signingKeys.list() }),
  )

  app.post(
    '/v1/signing-keys/rotate',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        summary: 'Make a new key; the old one signs too for a while',
        body: optionalBody(
          Type.Object(
            {
              overlap: Type.Optional(
                Type.String({
                  maxLength: 100,
                  description: 'How long; default a day, at most 30.',
                  examples: ['P1D', '12h'],
                }),
              ),
            },
            { additionalProperties: false },
          ),
        ),
        response: { 200: keys },
      },
    },
    async ({ tenant, body }) => {
      await tenant.signingKeys.rotate(readDuration('overlap', body?.overlap ?? DEFAULT_OVERLAP, MAX_OVERLAP_MS))
      return { items: await tenant.signingKeys.list() }
    },
  )
}
