import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { MINUTE, record, START, startKit } from './kit.ts'

type Kit = Awaited<ReturnType<typeof startKit>>['kit']

const RETRY = { maxAttempts: 5, backoff: { type: 'fixed', initial: '1h', jitter: 0 } } as const
const EVERY = { every: '10m' } as const

/** Ways in which a run ends that waits between two attempts. */
const WAYS: Record<string, { job: object; end: (kit: Kit, jobId: string) => Promise<unknown> }> = {
  'a cancel of the run': { job: {}, end: (kit, jobId) => kit.runs.cancel(runIdOf(jobId, START)) },
  'a cancel of its job': { job: EVERY, end: (kit, jobId) => kit.jobs.cancel(jobId) },
  'the delete of its job': { job: EVERY, end: async (kit, jobId) => (await kit.tenant('default')).jobs.delete(jobId) },
  'a purge of its queue': { job: EVERY, end: async (kit) => (await kit.tenant('default')).queues.purge('emails') },
  'a later time of its job': { job: { ...EVERY, overlap: 'cancel_running' }, end: (kit) => kit.pass(10 * MINUTE) },
}

test.each(Object.entries(WAYS))(
  'the end of a run by %s follows its attempts, and no two rows have one number',
  async (_, { job, end }) => {
    const { kit, query } = await startKit()
    await record(kit, 'emails', () => {
      throw new Error('down')
    })
    const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: RETRY, ...job })
    await kit.settle()
    await end(kit, jobId)
    const runId = runIdOf(jobId, START)
    expect(await kit.runs.get(runId)).toMatchObject({
      ...{ status: 'canceled', attempt: 1, failures: 1 },
      attempts: [
        { number: 1, status: 'failed', counted: true },
        { number: 2, status: 'canceled', counted: false, leasedAt: null, startedAt: null, holder: null },
      ],
    })
    expect(await query('select number from attempts where final and nominal_at = $1', [new Date(START)])).toEqual([
      { number: 2 },
    ])
    const { items } = await kit.runs.list({ status: 'canceled' })
    expect(items).toMatchObject([{ id: runId, attempt: 1, failures: 1 }])
  },
)

test('a run that was never leased ends with the number 0, whatever ends it', async () => {
  const { kit } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await (await kit.tenant('default')).queues.purge('emails')
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({
    ...{ status: 'canceled', attempt: 0 },
    attempts: [{ number: 0, counted: false, status: 'canceled' }],
  })
})

test('explain counts the attempts of a run that was canceled between two of them', async () => {
  const { kit } = await startKit()
  await record(kit, 'emails', () => {
    throw new Error('down')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: RETRY })
  await kit.settle()
  await kit.runs.cancel(runIdOf(jobId, START))
  const { verdict, run, sentence } = await (await kit.tenant('default')).jobs.explain(
    jobId,
    new Date(START).toISOString(),
  )
  expect([verdict, run?.attempt]).toEqual(['ran', 1])
  expect(sentence).toContain('was canceled after one attempt')
})
