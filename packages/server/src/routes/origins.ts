import { Type } from 'typebox'
import type { App } from '../app.ts'
import { limitFields, shownLimits } from '../schemas/limits.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'

const tags = ['Origins']
const originText = Type.String({
  maxLength: 300,
  description: 'Scheme, host and port of HTTP targets; percent-encoded in an address.',
  examples: ['https://api.example.com'],
})
const params = Type.Object({ origin: originText }, { additionalProperties: false })
const origin = Type.Object({ origin: originText, ...shownLimits }, { title: 'Origin', additionalProperties: true })

export function originRoutes(app: App): void {
  app.get(
    '/v1/origins',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List the origins whose calls are limited',
        querystring: pageQuery({}),
        response: { 200: pageOf(origin) },
      },
    },
    ({ tenant, query }) => tenant.origins.list(query),
  )

  app.get(
    '/v1/origins/:origin',
    {
      config: { scope: 'read' },
      schema: { tags, summary: 'Get the limits of an origin', params, response: { 200: origin } },
    },
    ({ tenant, params }) => tenant.origins.get(params.origin),
  )

  app.put(
    '/v1/origins/:origin',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Limit the calls to an origin',
        description:
          "For all jobs of the tenant, on all nodes together. It replaces the limits that were there; one that is left out is none. Runs over the limit wait, uncounted. Calls that are under way are not counted, and other nodes know a new origin's limit within a second.",
        params,
        body: Type.Object(limitFields, {
          additionalProperties: false,
          examples: [{ maxRunning: 10, rateLimit: { limit: 50, period: 'PT1S' } }],
        }),
        response: { 200: origin, 201: origin },
      },
    },
    async ({ tenant, params, body }, reply) => {
      const { created } = await tenant.origins.put(params.origin, body)
      return reply.status(created ? 201 : 200).send(await tenant.origins.get(params.origin))
    },
  )

  app.delete(
    '/v1/origins/:origin',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Take the limits of an origin away', params, response: { 204: noContent } },
    },
    async ({ tenant, params }, reply) => {
      await tenant.origins.delete(params.origin)
      return reply.status(204).send()
    },
  )
}
