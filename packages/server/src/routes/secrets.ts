import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { instant, noContent } from '../schemas/page.ts'

const MAX_SECRET_LENGTH = 65_536

const tags = ['Secrets']
const name = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._-]+$',
  description: 'What `{{secret:name}}` calls it.',
  examples: ['crm_token'],
})
const params = Type.Object({ name }, { additionalProperties: false })
const secret = Type.Object(
  { name, updatedAt: instant('When its value was last written.') },
  { title: 'Secret', description: 'The value is never read back.' },
)

export function secretRoutes(app: App): void {
  app.get(
    '/v1/secrets',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List the names of secrets',
        response: { 200: Type.Object({ items: Type.Array(secret) }) },
      },
    },
    async ({ tenant }) => ({ items: await tenant.secrets.list() }),
  )

  app.get(
    '/v1/secrets/:name',
    {
      config: { scope: 'read' },
      schema: { tags, summary: 'See when a secret was written', params, response: { 200: secret } },
    },
    async ({ tenant, params }) => {
      const found = (await tenant.secrets.list()).find((one) => one.name === params.name)
      if (!found) throw noSecret(params.name)
      return found
    },
  )

  app.put(
    '/v1/secrets/:name',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Write a secret, for `{{secret:name}}` in HTTP targets',
        params,
        body: Type.Object(
          { value: Type.String({ minLength: 1, maxLength: MAX_SECRET_LENGTH }) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ name }) },
      },
    },
    async ({ tenant, params, body }) => {
      await tenant.secrets.put(params.name, body.value)
      return { name: params.name }
    },
  )

  app.delete(
    '/v1/secrets/:name',
    { config: { scope: 'write' }, schema: { tags, summary: 'Delete a secret', params, response: { 204: noContent } } },
    async ({ tenant, params }, reply) => {
      if (!(await tenant.secrets.delete(params.name))) throw noSecret(params.name)
      return reply.status(204).send()
    },
  )
}

const noSecret = (name: string): BelfryError => new BelfryError('not_found', `there is no secret ${name}`)
