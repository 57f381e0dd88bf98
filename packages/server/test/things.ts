import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { Api, Call } from './api.ts'
import type { Operation } from './openapi.ts'

interface Owner {
  api: Api
  /** Of the tenant; whose keys and whose row it is. */
  id: string
  name: string
  call: Call
  /** The tenant whose circuits are opened, if another. */
  circuitsOf?: string
}

interface Thing {
  /** Makes one for a tenant and answers what names it in an address. */
  make(owner: Owner): Promise<string>
  /** The name of one that never was, in the form of a real one. */
  unknown(): string
  /** Each tenant has names of its own: what one calls by a foreign name is not there yet, and may be made. */
  isNamed?: true
  /** Whoever knows it may use it. */
  isToken?: true
}

const unique = (prefix: string): string => `${prefix}_${randomBytes(6).toString('hex')}`
const SOME_SHARD = '7003'
const unknownJobId = (): string => {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-${SOME_SHARD}-8${randomBytes(2).toString('hex').slice(1)}-${randomBytes(6).toString('hex')}`
}
const unknownRunId = (): string => `${unknownJobId()}.${Date.now().toString(36)}`
const unknownUuid = (): string => unknownJobId()

/** A queue that nobody serves, so that what waits in it stays as it is. */
const STILL = 'still'
const FAILS = 'fails'

async function makeJob({ call }: Owner, more: object): Promise<string> {
  const { status, body } = await call<{ jobId: string }>('POST /v1/jobs', { queue: STILL, payload: 1, ...more })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.jobId
}

async function runOf({ call }: Owner, jobId: string): Promise<string> {
  const { body } = await call<{ items: { id: string }[] }>(`GET /v1/jobs/${jobId}/runs`)
  return body.items[0]?.id ?? ''
}

/** By the segment before the parameter: `jobs` in `/v1/jobs/{id}`. */
const THINGS: Record<string, Thing> = {
  jobs: { make: (owner) => makeJob(owner, { delay: '1d' }), unknown: unknownJobId },
  'by-name': {
    make: async (owner) => {
      const name = unique('job')
      await makeJob(owner, { delay: '1d', name })
      return name
    },
    unknown: () => unique('job'),
    isNamed: true,
  },
  runs: { make: async (owner) => runOf(owner, await makeJob(owner, {})), unknown: unknownRunId },
  'dead-letters': {
    make: async (owner) => {
      serveFailing(owner)
      const runId = await runOf(owner, await makeJob(owner, { queue: FAILS, retry: { maxAttempts: 1 } }))
      const isThere = async () => (await owner.call(`GET /v1/dead-letters/${runId}`)).status
      await expect.poll(isThere).toBe(200)
      return runId
    },
    unknown: unknownRunId,
  },
  batches: {
    make: async (owner) => {
      const body = { jobs: [{ queue: STILL, payload: 1 }], batch: { name: 'some' } }
      const made = await owner.call<{ batchId: string }>('POST /v1/jobs/batch', body)
      expect(made.status, JSON.stringify(made.body)).toBe(201)
      return made.body.batchId
    },
    unknown: unknownUuid,
  },
  backfills: {
    make: async (owner) => {
      const jobId = await makeJob(owner, { cron: '0 0 1 1 *' })
      const range = { from: '2020-01-01T00:00:00Z', to: '2022-01-01T00:00:00Z' }
      const made = await owner.call<{ backfillId: string }>(`POST /v1/jobs/${jobId}/backfill`, range)
      expect(made.status, JSON.stringify(made.body)).toBe(201)
      const { backfillId } = made.body
      // Its first run waits in a queue that nobody serves, and from then on it stays as it is.
      const get = () => owner.call<{ counts: { created: number } }>(`GET /v1/backfills/${backfillId}`)
      await expect.poll(async () => (await get()).body.counts.created).toBe(1)
      return backfillId
    },
    unknown: unknownUuid,
  },
  queues: {
    make: async ({ call }) => {
      const name = unique('queue')
      expect((await call(`PUT /v1/queues/${name}`, {})).status).toBeLessThan(300)
      return name
    },
    unknown: () => unique('queue'),
    isNamed: true,
  },
  payloads: {
    make: async ({ call }) => {
      const put = await call<{ payloadRef: string }>('PUT /v1/payloads', 'some text', { 'content-type': 'text/plain' })
      expect(put.status, JSON.stringify(put.body)).toBe(201)
      return put.body.payloadRef
    },
    unknown: () => `pl_${unknownUuid().replaceAll('-', '')}`,
  },
  secrets: {
    make: async ({ call }) => {
      const name = unique('secret')
      expect((await call(`PUT /v1/secrets/${name}`, { value: 'hush' })).status).toBeLessThan(300)
      return name
    },
    unknown: () => unique('secret'),
    isNamed: true,
  },
  calendars: {
    make: async ({ call }) => {
      const name = unique('calendar')
      expect((await call(`PUT /v1/calendars/${name}`, { days: ['2026-12-25'] })).status).toBeLessThan(300)
      return name
    },
    unknown: () => unique('calendar'),
    isNamed: true,
  },
  pauses: {
    make: async ({ call }) => {
      const made = await call<{ id: string }>('POST /v1/pauses', { key: unique('key') })
      expect(made.status, JSON.stringify(made.body)).toBe(201)
      return made.body.id
    },
    unknown: unknownUuid,
  },
  origins: {
    make: async ({ call }) => {
      const origin = `https://${unique('host').replace('_', '-')}.example`
      expect((await call(`PUT /v1/origins/${encodeURIComponent(origin)}`, { maxRunning: 5 })).status).toBe(201)
      return origin
    },
    unknown: () => `https://${unique('host').replace('_', '-')}.example`,
    isNamed: true,
  },
  circuits: {
    make: async ({ api, id, circuitsOf = id }) => {
      const origin = `https://${unique('host').replace('_', '-')}.example:443`
      await api.query(
        `insert into circuits (opened_at, probe_at, tenant_id, open_ms, failures, origin, reason)
         values (now(), now() + interval '1 hour', $1, 10000, 20, $2, 'http_5xx')`,
        [circuitsOf, origin],
      )
      return origin
    },
    unknown: () => `https://${unique('host').replace('_', '-')}.example:443`,
    isNamed: true,
  },
  tenants: { make: async ({ id }) => String(id), unknown: () => '1999999999' },
  'api-keys': {
    make: async ({ api, id }) => {
      const made = await api.call<{ id: string }>('POST /v1/api-keys', { tenantId: id, name: 'one', scopes: ['read'] })
      return made.body.id
    },
    unknown: unknownUuid,
  },
  workers: {
    make: async ({ call }) => {
      const id = unique('worker')
      expect((await call(`PUT /v1/workers/${id}`, {})).status).toBeLessThan(300)
      return id
    },
    unknown: () => unique('worker'),
    isNamed: true,
  },
  tokens: {
    make: async (owner) => {
      const [queue, workerId] = [unique('queue'), unique('worker')]
      await makeJob(owner, { queue })
      const lease = { workerId, waitMs: 10_000, leaseMs: 600_000 }
      const { body } = await owner.call<{ runs: { token: string }[] }>(`POST /v1/queues/${queue}/lease`, lease)
      // That it was seen is written a little later, and must not look like something that another has changed.
      const isKnown = async () => (await owner.call(`GET /v1/workers/${workerId}`)).status
      await expect.poll(isKnown).toBe(200)
      return body.runs[0]?.token ?? ''
    },
    unknown: () => randomBytes(82).toString('base64url'),
  },
  callbacks: { make: async () => unique('token'), unknown: () => unique('token'), isToken: true },
}

/** Parameters of queries that name something. */
const IN_QUERIES: Record<string, string> = { job: 'jobs', jobId: 'jobs', queue: 'queues' }

/** Fields of bodies that name something, and how they hold it. */
const IN_BODIES: Record<string, { kind: string; hold(value: string): unknown }> = {
  runIds: { kind: 'dead-letters', hold: (value) => [value] },
  payloadRef: { kind: 'payloads', hold: (value) => value },
  tenantId: { kind: 'tenants', hold: Number },
  leases: { kind: 'tokens', hold: (token) => [{ token }] },
  results: { kind: 'tokens', hold: (token) => [{ token, status: 'succeeded' }] },
}

const served = new WeakMap<Api, Set<string>>()
function serveFailing({ api, name }: Owner): void {
  const names = served.get(api) ?? new Set()
  if (names.has(name)) return
  served.set(api, names.add(name))
  const fail = () => Promise.reject(new Error('fails always'))
  api.belfry.handle(FAILS, fail, { tenant: name })
}

/** What a parameter of an address names. A path parameter that nobody has told here how to fill fails the test. */
export function thingOf({ path, title }: Operation, name: string): Thing & { kind: string } {
  const segments = path.split('/')
  const kind = segments[segments.indexOf(`{${name}}`) - 1] ?? ''
  const thing = THINGS[kind]
  if (thing === undefined) throw new Error(`${title}: say in things.ts how to make what {${name}} names`)
  return { ...thing, kind }
}

export function thingOfQuery(name: string): (Thing & { kind: string }) | null {
  const kind = IN_QUERIES[name]
  return kind === undefined ? null : { ...(THINGS[kind] as Thing), kind }
}

export function thingOfBody(name: string): (Thing & { hold(value: string): unknown }) | null {
  const found = IN_BODIES[name]
  return found === undefined ? null : { ...(THINGS[found.kind] as Thing), hold: found.hold }
}

export type { Owner, Thing }
