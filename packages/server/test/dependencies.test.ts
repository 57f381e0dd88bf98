import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

interface Made {
  jobs: { ref?: string; jobId: string }[]
  batchId?: string
}

test('a graph of jobs is created in one call, runs in its order, and its batch is counted', async () => {
  const t = await setup()
  const ran: unknown[] = []
  let parents: unknown
  t.handle('graph', async (run) => {
    ran.push(run.payload)
    if (run.payload === 'c') parents = await run.parents()
    return { of: run.payload }
  })
  const made = await t.call<Made>('POST /v1/jobs/batch', {
    jobs: [
      { ref: 'c', queue: 'graph', payload: 'c', after: { jobs: ['a', 'b'] } },
      { ref: 'b', queue: 'graph', payload: 'b', after: { jobs: ['a'] } },
      { ref: 'a', queue: 'graph', payload: 'a' },
    ],
    batch: { name: 'three', onFinish: { queue: 'graph', payload: 'end' } },
  })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const { jobs, batchId } = made.body
  expect(jobs.map(({ ref }) => ref)).toEqual(['c', 'b', 'a'])
  const batch = async () => (await t.call<{ finishedAt: string | null }>(`GET /v1/batches/${batchId}`)).body
  await expect.poll(() => ran).toEqual(['a', 'b', 'c', 'end'])
  await expect.poll(batch).toMatchObject({ name: 'three', total: 3, succeeded: 3, open: 0, progress: 1 })
  expect(parents).toMatchObject([
    { ref: 'a', status: 'succeeded', result: { of: 'a' } },
    { ref: 'b', status: 'succeeded', result: { of: 'b' } },
  ])
  const [c] = jobs
  const job = await t.call(`GET /v1/jobs/${c?.jobId}`)
  expect(job.body).toMatchObject({ batchId, after: { jobs: [jobs[2]?.jobId, jobs[1]?.jobId], on: 'success' } })
})

test('a worker gets the results of parents with its lease, and a waiting run says for whom it waits', async () => {
  const t = await setup()
  const lease = async (queue: string) => {
    const answer = await t.call<{ runs: { token: string; parents?: unknown }[] }>(`POST /v1/queues/${queue}/lease`, {
      workerId: 'w1',
      waitMs: 5_000,
    })
    return answer.body.runs[0]
  }
  const made = await t.call<Made>('POST /v1/jobs/batch', {
    jobs: [
      { ref: 'first', queue: 'pulled', payload: 1 },
      { ref: 'second', queue: 'pulled', payload: 2, after: { jobs: ['first'] } },
    ],
  })
  const [first, second] = made.body.jobs
  const runs = await t.call<{ items: { id: string }[] }>(`GET /v1/jobs/${second?.jobId}/runs`)
  expect((await t.call(`GET /v1/runs/${runs.body.items[0]?.id}`)).body).toMatchObject({
    status: 'blocked',
    waitsFor: { count: 1, jobs: [{ jobId: first?.jobId, hasFailed: false }] },
  })
  const explained = await t.call<{ sentence: string }>(`GET /v1/jobs/${second?.jobId}/explain`)
  expect(explained.body).toMatchObject({ verdict: 'waiting', reason: 'dependency' })
  expect(explained.body.sentence).toContain(`waits for job ${first?.jobId}`)
  const leased = await lease('pulled')
  const result = { rows: 7 }
  await t.call('POST /v1/leases/complete', {
    workerId: 'w1',
    results: [{ token: leased?.token, status: 'succeeded', result }],
  })
  expect((await lease('pulled'))?.parents).toMatchObject([
    { jobId: first?.jobId, ref: 'first', status: 'succeeded', result },
  ])
})

test('what is wrong with a graph is said with its place, and nothing of it is made', async () => {
  const t = await setup()
  const q = { queue: 'refused', payload: 1 }
  const refused = async (...jobs: object[]) =>
    (
      await t.call<{ code: string; status: number; errors: { path: string; message: string }[] }>(
        'POST /v1/jobs/batch',
        { jobs },
      )
    ).body
  expect(
    await refused({ ...q, ref: 'a', after: { jobs: ['b'] } }, { ...q, ref: 'b', after: { jobs: ['a'] } }),
  ).toMatchObject({
    code: 'invalid_job',
    status: 422,
    errors: [{ path: 'jobs[0].after', message: 'waits for itself: a → b → a' }],
  })
  expect(await refused(q, { ...q, after: { jobs: ['x'] } })).toMatchObject({
    errors: [{ path: 'jobs[1].after.jobs[0]' }],
  })
  const nobody = '019a2f5e-7c10-7003-9d55-3f1c2b4a6d70'
  expect(await refused({ ...q, after: { jobs: [nobody] } })).toMatchObject({ code: 'not_found', status: 404 })
  expect((await t.call('POST /v1/jobs', { ...q, after: { jobs: [nobody] } })).body).toMatchObject({
    code: 'not_found',
    detail: `there is no job ${nobody}`,
  })
  expect((await t.call('POST /v1/jobs', { ...q, ref: 'a' })).body).toMatchObject({ status: 422 })
  expect((await t.call<{ items: unknown[] }>('GET /v1/jobs?queue=refused')).body.items).toEqual([])
})
