import { expect } from 'vitest'
import { startTestServer } from './server.ts'

export interface Answer {
  status: number
  type: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever came
  body: any
}

export interface LeasedRun {
  runId: string
  jobId: string
  attempt: number
  failures: number
  token: string
  checkpoint?: unknown
  leaseUntil: string
}

export interface Item {
  token: string
  outcome: string
  note?: string
}

/** `POST /path` with a body: text and bytes go as they are. */
export type Caller = (line: string, body?: unknown) => Promise<Answer>

export function callerOf(url: string, key: string): Caller {
  return async (line, body) => {
    const [method = 'GET', path = '/'] = line.split(' ')
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    })
    const text = await answer.text()
    const type = answer.headers.get('content-type') ?? ''
    return { status: answer.status, type, body: /json/.test(type) ? JSON.parse(text) : text }
  }
}

/** What one worker calls, each with a status of 200. */
export function workerOf(call: Caller, workerId: string) {
  const ok = async (line: string, body: unknown) => {
    const answer = await call(line, body)
    expect(answer.status, JSON.stringify(answer.body).slice(0, 2_000)).toBe(200)
    return answer.body
  }
  return {
    lease: async (queue: string, more: object = {}): Promise<LeasedRun[]> =>
      (await ok(`POST /v1/queues/${queue}/lease`, { workerId, leaseMs: 600_000, waitMs: 10_000, ...more })).runs,
    heartbeat: async (leases: unknown[]): Promise<Item[]> =>
      (await ok('POST /v1/leases/heartbeat', { workerId, leases })).leases,
    complete: async (results: unknown[]): Promise<Item[]> =>
      (await ok('POST /v1/leases/complete', { workerId, results })).results,
    release: async (leases: unknown[]): Promise<Item[]> =>
      (await ok('POST /v1/leases/release', { workerId, leases })).leases,
  }
}

/** A refusal as the API promises it: the caller's fault, with a code, and with words. */
export function expectRefusal({ status, type, body }: Answer, about: string): void {
  expect(status, `${about}: ${JSON.stringify(body)?.slice(0, 500)}`).toBeGreaterThanOrEqual(400)
  expect(status, `${about}: ${JSON.stringify(body)?.slice(0, 500)}`).toBeLessThan(500)
  expect(type, about).toContain('application/problem+json')
  expect(body, about).toMatchObject({ status, code: expect.any(String), title: expect.any(String) })
}

/** A server, and tenants on it whose workers have a key of their own. */
export async function startHostile() {
  const server = await startTestServer()
  const admin = callerOf(server.url, server.adminKey)
  let tenants = 0
  /** A new one each time. */
  const tenant = async () => {
    const { id } = (await admin('POST /v1/tenants', { name: `tenant-${++tenants}` })).body
    const key = (scopes: string[]) =>
      admin('POST /v1/api-keys', { tenantId: id, name: 'k', scopes }).then(({ body }) => callerOf(server.url, body.key))
    const [write, work] = await Promise.all([key(['write', 'read']), key(['worker'])])
    const create = async (count = 1, job: object = {}) => {
      const jobs = Array.from({ length: count }, () => ({ queue: 'work', payload: 1, ...job }))
      const made = await write('POST /v1/jobs/batch', { jobs })
      expect(made.status, JSON.stringify(made.body)).toBe(201)
    }
    const worker = workerOf(work, 'w1')
    /** So many runs in the hands of the worker. */
    const leased = async (count = 1, job: object = {}) => {
      await create(count, job)
      const runs: LeasedRun[] = []
      while (runs.length < count)
        runs.push(...(await worker.lease('work', { max: Math.min(1_000, count - runs.length) })))
      return runs
    }
    const one = async (job: object = {}) => (await leased(1, job))[0] as LeasedRun
    const runOf = async (runId: string) => (await write(`GET /v1/runs/${runId}`)).body
    return { write, work, create, worker, leased, one, runOf }
  }
  return { tenant, stop: () => server.stop() }
}

export type Hostile = Awaited<ReturnType<typeof startHostile>>
