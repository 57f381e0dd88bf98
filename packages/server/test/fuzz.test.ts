import { ERRORS } from '@belfry/engine'
import { expect, onTestFinished, test } from 'vitest'
import { type Api, startApi } from './api.ts'
import { Chance } from './chance.ts'
import { Document, type Operation } from './openapi.ts'
import { Cut, type RawAnswer, RawClient } from './raw-client.ts'
import { type FuzzRequest, RequestMaker } from './requests.ts'
import { type Owner, thingOf, thingOfQuery } from './things.ts'

const REQUESTS = Number(process.env.BELFRY_FUZZ_REQUESTS ?? 20_000)
const SEED = Number(process.env.BELFRY_FUZZ_SEED ?? 1)
const CONNECTIONS = 12
const OF_EACH_KIND = 5
const REMEMBERED = 200
/** Faults that are enough to see what is wrong. */
const MAX_FAULTS = 20

const document = await Document.load()

/** What stores jobs is asked more often than its share. */
const creators = document.operations.filter(({ title }) =>
  ['POST /v1/jobs', 'POST /v1/jobs/batch', 'PUT /v1/jobs/by-name/{name}'].includes(title),
)

/** Things that exist, by kind; what the server says it has made is added, so that later requests meet it. */
class Known {
  readonly #byKind = new Map<string, string[]>()

  static async make(owner: Owner): Promise<Known> {
    const known = new Known()
    for (const operation of document.operations) {
      for (const { name, in: place } of operation.parameters) {
        if (place !== 'path') continue
        const { kind, make } = thingOf(operation, name)
        if (known.#byKind.has(kind)) continue
        for (let i = 0; i < OF_EACH_KIND; i++) known.add(kind, await make(owner))
      }
    }
    // Runs that can be retried.
    for (const runId of known.#byKind.get('dead-letters') ?? []) known.add('runs', runId)
    // Where most of the jobs are, so that leases have something to give.
    known.add('queues', 'emails')
    return known
  }

  add(kind: string, value: string): void {
    const values = this.#byKind.get(kind) ?? []
    this.#byKind.set(kind, [value, ...values].slice(0, REMEMBERED))
  }

  inBodies(name: string): readonly string[] {
    return name === 'token' ? (this.#byKind.get('tokens') ?? []) : []
  }

  of(operation: Operation, name: string): string[] | undefined {
    const isInPath = operation.parameters.some((one) => one.name === name && one.in === 'path')
    const kind = isInPath ? thingOf(operation, name).kind : thingOfQuery(name)?.kind
    return kind === undefined ? undefined : this.#byKind.get(kind)
  }
}

/** What answers say of what has been made. */
interface Made {
  jobId?: string
  jobs?: { jobId: string }[]
  id?: string | number
  runId?: string
  runs?: { token: string }[]
  payloadRef?: string
}

interface Stored {
  acknowledged: Set<string>
  deleted: Set<string>
}

async function setup() {
  const api = await startApi()
  onTestFinished(() => api.stop())
  const { id } = (await api.call<{ id: string }>('POST /v1/tenants', { name: 'scratch' })).body
  // What is made belongs to the tenant of the key, but tenants and keys that are changed are another's: else the run
  // would soon have taken its own rights away.
  const [{ tenantId } = { tenantId: 0 }] = await api.query<{ tenantId: number }>(
    `select id as "tenantId" from tenants where name = 'default'`,
  )
  const owner: Owner = { api, id, name: 'default', call: api.call, circuitsOf: String(tenantId) }
  return { api, owner, known: await Known.make(owner), ownTenantId: String(tenantId) }
}

/** What is wrong with an answer; null: nothing. */
function faultOf(answer: RawAnswer, method: string): string | null {
  const { status, headers, body } = answer
  if (status >= 500) return `answered ${status}`
  if (status < 400 || method === 'HEAD') return null
  if (!headers['content-type']?.startsWith('application/problem+json')) return `${status} is no problem+json`
  const problem = JSON.parse(body) as { code: string; status: number }
  if (!Object.hasOwn(ERRORS, problem.code)) return `the code ${problem.code} is not of the catalogue`
  return problem.status === status ? null : `says ${problem.status} in a ${status}`
}

/** Node closes such connections without a word. */
const mayBeCut = ({ method }: FuzzRequest): boolean => method === 'CONNECT'

function remember({ method, target, bytes }: FuzzRequest, { status, body }: RawAnswer, known: Known, stored: Stored) {
  if (status >= 300 || method === 'HEAD') return
  if (target.startsWith('/v1/jobs/actions') && bytes.includes('"delete"') && body.startsWith('{'))
    for (const jobId of (JSON.parse(body) as { jobIds?: string[] }).jobIds ?? []) stored.deleted.add(jobId)
  if (method === 'DELETE') stored.deleted.add(/^\/v1\/jobs\/([^/?]+)/.exec(target)?.[1] ?? '')
  if (!body.startsWith('{') || method === 'GET') return
  const made = JSON.parse(body) as Made
  for (const { jobId } of [made as { jobId?: string }, ...(Array.isArray(made.jobs) ? made.jobs : [])]) {
    if (jobId === undefined) continue
    stored.acknowledged.add(jobId)
    known.add('jobs', jobId)
  }
  if (made.runId !== undefined) known.add('runs', made.runId)
  const [, kind] = /^\/v1\/([a-z-]+)$/.exec(target) ?? []
  if (kind !== undefined && made.id !== undefined) known.add(kind, String(made.id))
  for (const { token } of made.runs ?? []) known.add('tokens', token)
  if (made.payloadRef !== undefined) known.add('payloads', made.payloadRef)
}

async function fuzz({ api, known, ownTenantId }: Awaited<ReturnType<typeof setup>>) {
  const maker = new RequestMaker({
    document,
    key: api.adminKey,
    known: (operation, name) => known.of(operation, name),
    knownInBodies: (name) => known.inBodies(name),
  })
  const stored: Stored = { acknowledged: new Set(), deleted: new Set() }
  const statuses = new Map<string, number>()
  const faults: string[] = []
  let next = 0
  const work = async () => {
    let client = new RawClient(api.port)
    while (next < REQUESTS && faults.length < MAX_FAULTS) {
      const chance = Chance.of(SEED, next++)
      const request = maker.make(chance.pick(chance.happens(0.15) ? creators : document.operations), chance)
      if (request.target.startsWith(`/v1/tenants/${ownTenantId}`)) continue
      const line = `${request.method} ${request.target.slice(0, 200)} (${request.flaw})`
      try {
        const answer = await client.send(request.bytes, { head: request.method === 'HEAD' })
        const fault = faultOf(answer, request.method)
        if (fault !== null)
          faults.push(
            `${line}: ${fault}\n${answer.body.slice(0, 500)}\n${request.bytes.toString('utf8').slice(0, 1_500)}`,
          )
        const name = `${request.operation.title} ${answer.status}`
        statuses.set(name, (statuses.get(name) ?? 0) + 1)
        remember(request, answer, known, stored)
      } catch (error) {
        if (!(error instanceof Cut)) throw error
        if (!mayBeCut(request)) faults.push(`${line}: no answer\n${request.bytes.toString('utf8').slice(0, 1_500)}`)
      }
      if (request.last) {
        client.close()
        client = new RawClient(api.port)
      }
    }
    client.close()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  return { stored, statuses, faults }
}

/** Ids of jobs that have left something in the database. */
async function storedJobs(api: Api): Promise<Set<string>> {
  const rows = await api.query<{ id: string }>(
    `select id from jobs union select job_id from specs union select job_id from timers
     union select job_id from runs union select job_id from attempts`,
  )
  return new Set(rows.map(({ id }) => id))
}

test(
  `${REQUESTS} requests from the schemas, good and hostile: never a 5xx, never a crash, never a half-stored job`,
  async () => {
    const t = await setup()
    const before = await storedJobs(t.api)
    const { stored, statuses, faults } = await fuzz(t)
    if (process.env.BELFRY_FUZZ_SAY) console.log([...statuses].sort().join('\n'))
    expect({ faults, errors: t.api.errors }).toEqual({ faults: [], errors: [] })

    // The run is worth something only if requests of each kind got through.
    for (const { title } of document.operations) {
      const wasAnswered = [...statuses.keys()].some((name) => name.startsWith(`${title} 2`))
      expect(wasAnswered || title.includes('callbacks'), `${title} never succeeded`).toBe(true)
    }
    const present = await storedJobs(t.api)
    expect(stored.acknowledged.size).toBeGreaterThan(100)
    expect([...stored.acknowledged].filter((id) => !present.has(id) && !stored.deleted.has(id))).toEqual([])
    expect([...present].filter((id) => !before.has(id) && !stored.acknowledged.has(id))).toEqual([])
    expect((await t.api.call('GET /readyz')).status).toBe(200)
  },
  120_000 + REQUESTS * 5,
)

const bodied = document.operations.filter(({ body }) => body !== null)
const HUNDRED_MB = 104_857_600

function headOf({ method, path, body }: Operation, key: string, length: string): string {
  const target = path.replace(/\{\w+\}/g, 'x')
  return [
    `${method} ${target} HTTP/1.1`,
    'Host: belfry.test',
    `Authorization: Bearer ${key}`,
    `Content-Type: ${body?.contentType}`,
    length,
    '\r\n',
  ].join('\r\n')
}

test('a body of 100 MB is refused without being taken in, whether it is announced or not', async () => {
  const api = await startApi()
  onTestFinished(() => api.stop())
  const answers = new Map<string, string>()
  const before = process.memoryUsage().arrayBuffers
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, '['), Buffer.from('\r\n')])
  function* streamed(operation: Operation): Generator<Buffer> {
    yield Buffer.from(headOf(operation, api.adminKey, 'Transfer-Encoding: chunked'))
    for (let sent = 0; sent < HUNDRED_MB; sent += 65_536) yield chunk
    yield Buffer.from('0\r\n\r\n')
  }
  for (const operation of bodied) {
    for (const [how, parts] of [
      ['announced', headOf(operation, api.adminKey, `Content-Length: ${HUNDRED_MB}`)],
      ['streamed', streamed(operation)],
    ] as const) {
      const client = new RawClient(api.port)
      const answer = await client.send(parts).catch((error: Error) => error)
      client.close()
      const shown = answer instanceof Cut ? 'cut off' : `${(answer as RawAnswer).status} ${(answer as RawAnswer).body}`
      answers.set(`${operation.title} ${how}`, shown)
    }
  }
  for (const [title, answer] of answers) expect(answer, title).toMatch(/^413 .*"code":"(body|payload)_too_large"/)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(HUNDRED_MB)
})

test('a body that comes too slowly, or never, is given up', async () => {
  const api = await startApi({ requestTimeoutMs: 1_000 })
  onTestFinished(() => api.stop())
  const answers = await Promise.all(
    bodied.map(async (operation) => {
      const client = new RawClient(api.port)
      const answer = await client.send(`${headOf(operation, api.adminKey, 'Content-Length: 100')}{"slow":`)
      client.close()
      return `${operation.title} ${answer.status} ${answer.body}`
    }),
  )
  for (const answer of answers) expect(answer).toMatch(/ 408 .*"code":"request_timeout"/)
})

test('a client that hangs up in the middle of a body leaves nothing behind', async () => {
  const api = await startApi()
  onTestFinished(() => api.stop())
  const before = await storedJobs(api)
  const create = bodied.find(({ title }) => title === 'POST /v1/jobs') as Operation
  const body = '{"payload":1,"queue":"nowhere"}'
  for (let cut = 0; cut < body.length; cut++) {
    const client = new RawClient(api.port)
    const head = headOf(create, api.adminKey, `Content-Length: ${body.length}`)
    const answered = client.send(head + body.slice(0, cut))
    client.close()
    await expect(Promise.race([answered, Promise.reject(new Cut())])).rejects.toThrow(Cut)
  }
  expect((await api.call('GET /v1/whoami')).status).toBe(200)
  expect(await storedJobs(api)).toEqual(before)
})
