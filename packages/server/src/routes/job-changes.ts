import type { JobInput } from '@belfry/engine'
import { type TProperties, Type } from 'typebox'
import type { App } from '../app.ts'
import { etagOf, versionOf } from '../etag.ts'
import type { Limiter } from '../rate-limit.ts'
import { jobId, jobParams, runId } from '../schemas/ids.ts'
import { jobChange, jobStatus } from '../schemas/job.ts'
import { jobPatch, namedJobInput } from '../schemas/job-input.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'
import { canceled } from '../schemas/run.ts'
import { judgedBelow, optionalBody } from '../validation.ts'
import { refuseTenant } from './jobs.ts'

const tags = ['Jobs']
const status = Type.Object({ status: jobStatus })
const version = Type.Integer({ description: 'Also the ETag.' })
const upserted = Type.Object({ jobId, created: Type.Boolean(), version })
const body = <Fields extends TProperties>(fields: Fields) =>
  optionalBody(Type.Object(fields, { additionalProperties: false }))

/** Everything that changes a job that is there. */
export function jobChangeRoutes(app: App, limiter: Limiter): void {
  app.put(
    '/v1/jobs/by-name/:name',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Create a job of this name, or make the one that is there like this',
        params: Type.Object({ name: Type.String({ minLength: 1, maxLength: 255 }) }, { additionalProperties: false }),
        body: judgedBelow<JobInput>(namedJobInput),
        response: { 200: upserted, 201: upserted },
      },
    },
    async ({ tenant, caller, params, body }, reply) => {
      refuseTenant(body)
      limiter.takeCreates(caller, 1, reply)
      const done = await tenant.jobs.upsert(params.name, body)
      reply.status(done.created ? 201 : 200).header('etag', etagOf(done.version))
      return done
    },
  )

  app.patch(
    '/v1/jobs/:jobId',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Change some fields of a job',
        description: 'What is due already stays due. A one-off that has become a run cannot be changed.',
        params: jobParams,
        headers: Type.Object({
          'If-Match': Type.Optional(
            Type.String({ description: 'The ETag that must still hold, else 412.', examples: ['"3"'] }),
          ),
        }),
        body: judgedBelow<Partial<JobInput>>(jobPatch),
        response: { 200: Type.Object({ version }) },
      },
    },
    async ({ tenant, params, body, headers }, reply) => {
      refuseTenant(body)
      const ifVersion = versionOf(headers['if-match'])
      const done = await tenant.jobs.update(params.jobId, body, ifVersion === undefined ? {} : { ifVersion })
      reply.header('etag', etagOf(done.version))
      return { version: done.version }
    },
  )

  app.delete(
    '/v1/jobs/:jobId',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Delete a job; its history stays',
        params: jobParams,
        response: { 204: noContent },
      },
    },
    async ({ tenant, params }, reply) => {
      await tenant.jobs.delete(params.jobId)
      return reply.status(204).send()
    },
  )

  app.post(
    '/v1/jobs/:jobId/cancel',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'No more runs; those alive are asked to stop',
        params: jobParams,
        body: body({
          running: Type.Optional(
            Type.Enum(['cancel', 'finish'], { description: 'What becomes of runs under way; default cancel.' }),
          ),
        }),
        response: { 200: canceled },
      },
    },
    ({ tenant, params, body }) => tenant.jobs.cancel(params.jobId, body),
  )

  app.post(
    '/v1/jobs/:jobId/pause',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'No new runs until resumed; retries go on',
        params: jobParams,
        body: body({ reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })) }),
        response: { 200: status },
      },
    },
    ({ tenant, params, body }) => tenant.jobs.pause(params.jobId, body),
  )

  app.post(
    '/v1/jobs/:jobId/resume',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Go on from now, or make up for the pause',
        description:
          'With `catch_up` the times that fell into the pause are decided as after an outage, by the `catchUp` and `overlap` of the job.',
        params: jobParams,
        body: body({
          missed: Type.Optional(
            Type.Enum(['skip', 'catch_up'], { description: 'What becomes of times in the pause; default skip.' }),
          ),
        }),
        response: { 200: status },
      },
    },
    ({ tenant, params, body }) => tenant.jobs.resume(params.jobId, body),
  )

  app.post(
    '/v1/jobs/:jobId/trigger',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'One run now, beside the schedule',
        description:
          'While another run of the job is alive, `overlap` decides: the new one starts beside it, waits for it (`status` is `blocked`), replaces it, or is refused (409 `overlap`).',
        params: jobParams,
        body: body({
          payload: Type.Optional(
            Type.Unknown({ description: "For this run alone, in place of its job's; JSON of at most 262,144 bytes." }),
          ),
          overlap: Type.Optional(
            Type.Enum(['allow', 'skip', 'buffer_one', 'buffer_latest', 'buffer_all', 'cancel_running'], {
              description: 'For this run alone: what happens while another one is alive; default as the job says.',
            }),
          ),
        }),
        response: {
          200: Type.Object({
            runId,
            status: Type.Enum(['ready', 'blocked'], { description: 'Blocked: it waits for the run that is alive.' }),
          }),
        },
      },
    },
    async ({ tenant, caller, params, body }, reply) => {
      limiter.takeCreates(caller, 1, reply)
      return tenant.jobs.trigger(params.jobId, body)
    },
  )

  app.get(
    '/v1/jobs/:jobId/changes',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'Who changed the job, and how',
        params: jobParams,
        querystring: pageQuery({}),
        response: { 200: pageOf(jobChange) },
      },
    },
    ({ tenant, params, query }) => tenant.jobs.changes(params.jobId, query),
  )
}
