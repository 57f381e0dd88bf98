import { BelfryError, type Complaint } from '@belfry/engine'
import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import type { App } from '../app.ts'
import { MAX_COMPLAINTS, refusal } from '../complaints.ts'
import { readDuration } from '../duration.ts'
import { HangUp } from '../hang-up.ts'
import {
  completeAnswer,
  completeBody,
  DEFAULT_LEASE_MS,
  heartbeatAnswer,
  heartbeatBody,
  leaseAnswer,
  leaseBody,
  releaseAnswer,
  releaseBody,
} from '../schemas/lease.ts'
import { queueName } from '../schemas/queue.ts'
import type { Service } from '../service.ts'

const BODY_LIMIT_BYTES = 8_388_608
/** As far as any time may be away. */
const MAX_RETRY_MS = 36_525 * 86_400_000

const tags = ['Leases']
const NOTHING = { runs: [] }
const config = { scope: 'worker' } as const

/** What workers call. One item that makes no sense to the engine gets its own answer and stops no other. */
export function leaseRoutes(app: App, service: () => Service | null): void {
  app.addHook('preClose', async () => service()?.endLeaseCalls())

  app.post(
    '/v1/queues/:queue/lease',
    {
      config,
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Lease runs of a queue; waits for some if there are none',
        description:
          'A long poll: it answers as soon as something is ready, or after `waitMs` with none. Whatever is leased must be completed, released, or kept with heartbeats; else somebody else gets it.',
        params: Type.Object({ queue: queueName }, { additionalProperties: false }),
        body: leaseBody,
        response: { 200: leaseAnswer },
      },
    },
    async ({ tenant, params, body }, reply) => {
      const call = leaseCall(body)
      const ended = body.results === undefined ? null : readResults(body.results)
      const ending = ended && tenant.workers.complete(body.workerId, ended)
      // Leasing does not wait for it; should it fail, that is said when the call is answered.
      ending?.catch(ignored)
      const gone = new HangUp(reply.raw)
      if (gone.aborted) return NOTHING
      const answer = await tenant.workers.lease(params.queue, call, gone)
      if (gone.aborted) return NOTHING
      gone.end()
      // Whoever named the call will repeat it, and is then answered with the same leases.
      if (answer.runs.length > 0 && body.requestId === undefined) {
        const giveBack = () => {
          tenant.workers.release(body.workerId, answer.runs.filter(isRepeatable).map(tokenOf)).catch(ignored)
        }
        whenNotSent(reply, giveBack)
        ending?.catch(giveBack)
      }
      return ending === null ? answer : { ...answer, results: await ending }
    },
  )

  app.post(
    '/v1/leases/heartbeat',
    {
      config,
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Keep leases, and leave checkpoints, progress and log lines',
        description: 'Concerns the tokens that it lists and no others. May be repeated as it is.',
        body: heartbeatBody,
        response: { 200: heartbeatAnswer },
      },
    },
    ({ tenant, body }) => tenant.workers.heartbeat(body.workerId, body.leases.map(readBeat)),
  )

  app.post(
    '/v1/leases/complete',
    {
      config,
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Say how attempts ended',
        description: 'May be repeated as it is: what was completed as it says is answered with `ok` again.',
        body: completeBody,
        response: { 200: completeAnswer },
      },
    },
    async ({ tenant, body }) => ({ results: await tenant.workers.complete(body.workerId, readResults(body.results)) }),
  )

  app.post(
    '/v1/leases/release',
    {
      config,
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Give leases back; that counts as no failure',
        body: releaseBody,
        response: { 200: releaseAnswer },
      },
    },
    async ({ tenant, body }) => ({
      leases: await tenant.workers.release(body.workerId, body.leases),
    }),
  )
}

/**
 * A connection that broke before all of the answer was on its way: nobody can have read it. Node finishes such an answer, too,
 * but of a socket that is destroyed by then.
 */
function whenNotSent({ raw }: FastifyReply, undo: () => void): void {
  const { socket } = raw
  let isSent = false
  raw.once('finish', () => {
    isSent = socket?.destroyed === false
  })
  raw.once('close', () => {
    if (!isSent) undo()
  })
}

/** Of what may be performed once at most, not even a part of the answer may have been read. */
const isRepeatable = ({ atMostOnce }: { atMostOnce?: true }): boolean => atMostOnce !== true

const tokenOf = ({ token }: { token: string }) => ({ token })

/** Without it they come back when their leases end. */
const ignored = (): void => {}

function leaseCall(body: Static<typeof leaseBody>) {
  const { workerId, max = 1, waitMs = 0, leaseMs = DEFAULT_LEASE_MS, requestId, prefetch = 0, begins = false } = body
  if (prefetch > max) throw refusal([{ path: 'prefetch', message: `must be at most max, which is ${max}` }])
  return { workerId, max, waitMs, leaseMs, prefetch, begins, ...(requestId === undefined ? {} : { requestId }) }
}

type Beat = Static<typeof heartbeatBody>['leases'][number]

/** Most carry nothing but their token, and stay as they are. */
function readBeat(beat: Beat) {
  const { logs, ...rest } = beat
  if (logs === undefined) return rest
  return { ...rest, logs: logs.map(({ at, ...line }) => (at === undefined ? line : { ...line, at: new Date(at) })) }
}

type Result = Static<typeof completeBody>['results'][number]

/** Durations become milliseconds; what is wrong is said of all of them. */
function readResults(results: Result[]) {
  const complaints: Complaint[] = []
  const read = results.map(({ retryIn, ...result }, i) => {
    const retryInMs = retryIn === undefined ? undefined : readRetry(retryIn, `results[${i}].retryIn`, complaints)
    if (result.status === 'snoozed' && retryIn === undefined)
      complaints.push({ path: `results[${i}].retryIn`, message: 'is missing: say until when it is snoozed' })
    return retryInMs === undefined ? result : { ...result, retryInMs }
  })
  if (complaints.length > 0) throw refusal(complaints.slice(0, MAX_COMPLAINTS))
  return read
}

function readRetry(text: string, path: string, complaints: Complaint[]): number | undefined {
  try {
    return readDuration(path, text, MAX_RETRY_MS)
  } catch (error) {
    if (!(error instanceof BelfryError)) throw error
    complaints.push(...error.complaints)
    return undefined
  }
}
