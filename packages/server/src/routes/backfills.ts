import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Limiter } from '../rate-limit.ts'
import { backfill, backfillBody, backfillId, backfillPreview, createdBackfill } from '../schemas/backfill.ts'
import { jobParams } from '../schemas/ids.ts'
import { pageOf, pageQuery } from '../schemas/page.ts'

const tags = ['Backfills']
const params = Type.Object({ backfillId }, { additionalProperties: false })

export function backfillRoutes(app: App, limiter: Limiter): void {
  app.post(
    '/v1/jobs/:jobId/backfill',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Run the times of a schedule that have passed',
        description:
          'Makes runs of the nominal times in [from, to) that have none, a few at a time, with the definition that the job then has. Times that have or had a run are left out; skipped ones are what it is for. Ends where the schedule itself has still to decide. With `dryRun` it answers 200 with what it would do, and does nothing.',
        params: jobParams,
        body: backfillBody,
        response: { 200: backfillPreview, 201: createdBackfill },
      },
    },
    async ({ tenant, caller, params, body: { dryRun = false, ...input } }, reply) => {
      if (dryRun) return tenant.backfills.preview(params.jobId, input)
      limiter.takeCreates(caller, 1, reply)
      const made = await tenant.backfills.create(params.jobId, input)
      reply.status(201).header('location', `/v1/backfills/${made.backfillId}`)
      return made
    },
  )

  app.get(
    '/v1/jobs/:jobId/backfills',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'The backfills of a job, latest first',
        params: jobParams,
        querystring: pageQuery({}),
        response: { 200: pageOf(backfill) },
      },
    },
    ({ tenant, params, query }) => tenant.backfills.list(params.jobId, query),
  )

  app.get(
    '/v1/backfills/:backfillId',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'How far a backfill is',
        description: 'The counts of how its runs ended follow their ends within a second.',
        params,
        response: { 200: backfill },
      },
    },
    ({ tenant, params }) => tenant.backfills.get(params.backfillId),
  )

  app.post(
    '/v1/backfills/:backfillId/cancel',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Cancel a backfill: no more runs, and those alive are asked to stop',
        description: 'Again: the same answer. One that has completed is refused with `already_finished`.',
        params,
        response: { 200: backfill },
      },
    },
    ({ tenant, params }) => tenant.backfills.cancel(params.backfillId),
  )
}
