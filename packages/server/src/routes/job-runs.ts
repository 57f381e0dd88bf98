import { Type } from 'typebox'
import type { App } from '../app.ts'
import { jobParams } from '../schemas/ids.ts'
import { pageOf, pageQuery } from '../schemas/page.ts'
import { runStatus, runSummary } from '../schemas/run.ts'

export function jobRunRoutes(app: App): void {
  app.get(
    '/v1/jobs/:jobId/runs',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Jobs'],
        summary: 'The runs of a job, live and over',
        params: jobParams,
        querystring: pageQuery({ status: Type.Optional(runStatus) }),
        response: { 200: pageOf(runSummary) },
      },
    },
    async ({ tenant, params: { jobId }, query }) => {
      // A job that is not there has no list, not an empty one.
      await tenant.jobs.get(jobId)
      return tenant.runs.list({ ...query, jobId })
    },
  )
}
