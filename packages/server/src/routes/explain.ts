import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { explanation } from '../schemas/explanation.ts'
import { jobParams } from '../schemas/ids.ts'
import { instantText, pageOf, pageQuery } from '../schemas/page.ts'

const querystring = pageQuery({
  at: Type.Optional(
    instantText(
      'One instant, past or to come; default this minute, and of a job that runs once its run that is alive, else its time to come or its last run. Without seconds it means the nominal time in that minute, without milliseconds the one in that second.',
    ),
  ),
  from: Type.Optional(instantText('Every nominal time from here on …')),
  to: Type.Optional(instantText('… and before this.')),
})

export function explainRoutes(app: App): void {
  app.get(
    '/v1/jobs/:jobId/explain',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Jobs'],
        summary: 'Why a job ran, did not run or will run at an instant, or at each of its times in a range',
        description:
          'With `at` one explanation; with `from` and `to` a list of them, one for each nominal time, oldest first. The past is judged by the definition of that time.',
        params: jobParams,
        querystring,
        response: { 200: Type.Union([explanation, pageOf(explanation)]) },
      },
    },
    async ({ tenant, params: { jobId }, query: { at, from, to, ...page } }) => {
      if (at !== undefined && (from !== undefined || to !== undefined))
        throw refusal('at', 'cannot stand beside from and to')
      if (at !== undefined) return tenant.jobs.explain(jobId, at)
      if (from !== undefined && to !== undefined) return tenant.jobs.explainRange(jobId, { ...page, from, to })
      if (from === undefined && to === undefined) return tenant.jobs.explain(jobId)
      throw refusal(from === undefined ? 'from' : 'to', 'is missing: a range has both ends')
    },
  )
}

function refusal(path: string, message: string): BelfryError {
  return new BelfryError('invalid_request', `${path} ${message}`, { complaints: [{ path, message }] })
}
