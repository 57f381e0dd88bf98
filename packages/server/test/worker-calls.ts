import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { type Api, type Call, startApi } from './api.ts'

export interface Leased {
  runId: string
  jobId: string
  attempt: number
  failures: number
  token: string
  nominalAt: string
  leaseUntil: string
  deadline: string
  payload?: unknown
  payloadRef?: string
  labels?: Record<string, string>
  checkpoint?: unknown
  atMostOnce?: true
  traceparent: string
}
export interface LeaseAnswer {
  runs: Leased[]
  results?: Outcome[]
  cancelRequested?: string[]
  draining?: true
}
export interface Outcome {
  token: string
  outcome: string
  leaseUntil?: string
  note?: string
}

/** The calls of one worker, with one key. */
export function workerCalls(call: Call, workerId: string) {
  const ok = async <Body>(line: string, body: object): Promise<Body> => {
    const answer = await call<Body>(line, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body
  }
  return {
    id: workerId,
    lease: (queue: string, more: object = {}) =>
      ok<LeaseAnswer>(`POST /v1/queues/${queue}/lease`, { workerId, ...more }),
    heartbeat: (leases: object[]) =>
      ok<{ leases: Outcome[]; draining?: true }>('POST /v1/leases/heartbeat', { workerId, leases }),
    complete: async (results: object[]) =>
      (await ok<{ results: Outcome[] }>('POST /v1/leases/complete', { workerId, results })).results,
    release: async (tokens: string[]) => {
      const leases = tokens.map((token) => ({ token }))
      return (await ok<{ leases: Outcome[] }>('POST /v1/leases/release', { workerId, leases })).leases
    },
  }
}

/** One node for all tests of a file, which each have a tenant of their own. */
export function oneNode(): () => Promise<WithWorkers> {
  let api: Api
  let tests = 0
  beforeAll(async () => {
    api = await startApi()
  })
  afterAll(() => api.stop())
  return () => withWorkers(api, `acme-${++tests}`)
}

export async function startWithWorkers(): Promise<WithWorkers> {
  const api = await startApi()
  onTestFinished(() => api.stop())
  return withWorkers(api, 'acme')
}

type WithWorkers = Awaited<ReturnType<typeof withWorkers>>

/** A tenant whose jobs workers with a key of their own perform. */
async function withWorkers(api: Api, name: string) {
  const acme = await api.tenant(name, ['write'])
  const keyOf = async (tenantId: string | number, scopes: string[]) =>
    (await api.call<{ key: string }>('POST /v1/api-keys', { tenantId, name: 'k', scopes })).body.key
  const key = await keyOf(acme.id, ['worker'])
  const create = async (job: object) => {
    const { status, body } = await acme.call<{ jobId: string }>('POST /v1/jobs', { queue: 'mails', payload: 1, ...job })
    expect(status, JSON.stringify(body)).toBe(201)
    return body.jobId
  }
  const worker = (id: string) => workerCalls(api.as(key), id)
  /** A run that a worker has just leased. */
  const leased = async (
    by: ReturnType<typeof worker>,
    { job = {}, lease = {} }: { job?: object; lease?: object } = {},
  ) => {
    await create(job)
    const { runs } = await by.lease('mails', { waitMs: 10_000, ...lease })
    expect(runs).toHaveLength(1)
    return runs[0] as Leased
  }
  return { ...api, acme, key, keyOf, create, worker, leased, read: acme.call }
}
