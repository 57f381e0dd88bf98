import { BelfryError } from '@belfry/engine'
import { type Static, Type } from 'typebox'
import type { App } from '../app.ts'
import { deadLetter, deadLetterFilters, redriveBody } from '../schemas/dead-letter.ts'
import { runId } from '../schemas/ids.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'

const tags = ['Dead letters']
const params = Type.Object({ runId }, { additionalProperties: false })

export function deadLetterRoutes(app: App): void {
  app.get(
    '/v1/dead-letters',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List runs that were given up, the latest first',
        querystring: pageQuery(deadLetterFilters),
        response: { 200: pageOf(deadLetter) },
      },
    },
    ({ tenant, query }) => tenant.deadLetters.list(withJobId(query)),
  )

  app.get(
    '/v1/dead-letters/:runId',
    {
      config: { scope: 'read' },
      schema: { tags, summary: 'Get a dead letter', params, response: { 200: deadLetter } },
    },
    ({ tenant, params }) => tenant.deadLetters.get(params.runId),
  )

  app.post(
    '/v1/dead-letters/redrive',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Open the runs of dead letters again, by their ids or by a filter',
        body: redriveBody,
        response: { 200: Type.Object({ count: Type.Integer(), runIds: Type.Array(runId) }) },
      },
    },
    ({ tenant, body }) => tenant.deadLetters.redrive(chosen(body)),
  )

  app.delete(
    '/v1/dead-letters/:runId',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Drop a dead letter; its history stays', params, response: { 204: noContent } },
    },
    async ({ tenant, params }, reply) => {
      await tenant.deadLetters.delete(params.runId)
      return reply.status(204).send()
    },
  )
}

/** Neither would mean all of them by mistake, both would leave open which counts. */
function chosen({ runIds, filter, ...how }: Static<typeof redriveBody>) {
  if (runIds !== undefined && filter === undefined) return { runIds, ...how }
  if (filter !== undefined && runIds === undefined) return { filter: withJobId(filter), ...how }
  const message = 'give either runIds or filter'
  throw new BelfryError('invalid_request', message, { complaints: [{ path: '', message }] })
}

/** The engine's word for the filter `job`. */
function withJobId<Filter extends { job?: string }>({ job, ...rest }: Filter) {
  return job === undefined ? rest : { ...rest, jobId: job }
}
