import type { RunView, Tenant } from '@belfry/engine'
import { type Clock, pause } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { jobId, runId } from '../schemas/ids.ts'
import { instantText, pageOf, pageQuery } from '../schemas/page.ts'
import { canceled, failureClass, logLine, run, runStatus, runSummary } from '../schemas/run.ts'

const MAX_WAIT_MS = 30_000
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1_000
const PAUSE_GROWTH = 1.5

const tags = ['Runs']
const params = Type.Object({ runId }, { additionalProperties: false })
const filters = {
  status: Type.Optional(runStatus),
  job: Type.Optional(jobId),
  queue: Type.Optional(Type.String({ maxLength: 128 })),
  failureClass: Type.Optional(failureClass),
  from: Type.Optional(instantText('Only runs that ended at this instant or later; live ones, that are due then.')),
  to: Type.Optional(instantText('Only runs that ended before this instant; live ones, that are due before it.')),
}

export function runRoutes(app: App, clock: Clock): void {
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
  })

  app.get(
    '/v1/runs',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List runs, live ones first, then the latest end first',
        querystring: pageQuery(filters),
        response: { 200: pageOf(runSummary) },
      },
    },
    ({ tenant, query: { job, from, to, ...query } }) =>
      tenant.runs.list({
        ...query,
        ...(job === undefined ? {} : { jobId: job }),
        ...(from === undefined ? {} : { from: new Date(from) }),
        ...(to === undefined ? {} : { to: new Date(to) }),
      }),
  )

  app.get(
    '/v1/runs/:runId',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'Get a run with its attempts',
        params,
        querystring: Type.Object(
          {
            waitMs: Type.Optional(
              Type.Integer({
                minimum: 0,
                maximum: MAX_WAIT_MS,
                description: 'Answer when the run has finished, or after this time as it then is.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: run },
      },
    },
    (request) => {
      const { tenant, params, query } = request
      if (!query.waitMs) return tenant.runs.get(params.runId)
      const isWanted = () => !isStopping && !request.raw.destroyed
      return untilFinished(tenant, params.runId, { clock, until: clock.now() + query.waitMs, isWanted })
    },
  )

  app.get(
    '/v1/runs/:runId/logs',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'What its attempts logged, oldest first',
        params,
        response: { 200: Type.Object({ items: Type.Array(logLine) }) },
      },
    },
    async ({ tenant, params }) => ({ items: await tenant.runs.logs(params.runId) }),
  )

  app.post(
    '/v1/runs/:runId/cancel',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Cancel a run; one that is being performed is asked to stop',
        params,
        response: { 200: canceled },
      },
    },
    ({ tenant, params }) => tenant.runs.cancel(params.runId),
  )

  app.post(
    '/v1/runs/:runId/retry',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Open a failed or lost run again: same id, new attempts',
        params,
        response: { 200: Type.Object({ runId }) },
      },
    },
    ({ tenant, params }) => tenant.runs.retry(params.runId),
  )
}

interface Waiting {
  clock: Clock
  until: number
  isWanted(): boolean
}

/** Looks again with growing pauses: a run that takes long is not asked for often. */
async function untilFinished(tenant: Tenant, id: string, { clock, until, isWanted }: Waiting): Promise<RunView> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * PAUSE_GROWTH)) {
    const found = await tenant.runs.get(id)
    const leftMs = until - clock.now()
    if (found.finishedAt !== null || leftMs <= 0 || !isWanted()) return found
    await pause(Math.min(pauseMs, leftMs))
  }
}
