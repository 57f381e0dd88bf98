import { expect, test } from 'vitest'
import { RUN_STATE } from '../../src/job/states.ts'
import type { TestKit } from '../../src/testing/index.ts'
import { MINUTE, SECOND, startKit } from './kit.ts'

/** A handler that holds each run until it is let go, and remembers who began and how many were at work at a time. */
async function atWork(kit: TestKit, queue = 'mail') {
  const open = new Map<string, { resolve(): void; reject(error: Error): void; signal: AbortSignal }>()
  const begun: string[] = []
  let most = 0
  await kit.handle(queue, (run) => {
    const name = String(run.payload)
    begun.push(name)
    return new Promise<void>((resolve, reject) => {
      open.set(name, { resolve, reject, signal: run.signal })
      most = Math.max(most, open.size)
    })
  })
  const settle = () => kit.settle({ running: 'leave' })
  return {
    begun,
    settle,
    most: () => most,
    isAskedToStop: (name: string) => open.get(name)?.signal.aborted === true,
    async end(name: string, error?: Error) {
      const run = open.get(name)
      open.delete(name)
      if (error) run?.reject(error)
      else run?.resolve()
      await settle()
    },
  }
}

/** One job after the other, each a second later. */
async function createAll(kit: TestKit, names: readonly string[], job: object) {
  const made: string[] = []
  for (const payload of names) {
    made.push((await kit.jobs.create({ queue: 'mail', payload, ...job })).jobId)
    kit.clock.advance(SECOND)
  }
  return made
}

const LETTERS = ['a', 'b', 'c', 'd', 'e']

test('no more runs of a key are performed at a time than its limit, whatever jobs they are of, and all are performed', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  await createAll(kit, LETTERS, { concurrency: { key: 'acme', limit: 2 } })
  await createAll(kit, ['other'], { concurrency: { key: 'other', limit: 1 } })
  await w.settle()
  expect(w.begun).toEqual(['a', 'b', 'other'])
  await w.end('other')
  for (const name of ['b', 'a', 'c', 'd', 'e']) await w.end(name)
  expect(w.begun).toEqual(['a', 'b', 'other', 'c', 'd', 'e'])
  expect(w.most()).toBe(3)
})

test('a limit without a key is the job’s own', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const job = { every: 'PT1M', overlap: 'allow', queue: 'mail', concurrency: { limit: 1 } } as const
  await kit.jobs.create({ ...job, payload: 'one' })
  await kit.jobs.create({ ...job, payload: 'two' })
  for (let minute = 0; minute < 3; minute++) {
    kit.clock.advance(MINUTE)
    await w.settle()
  }
  expect(w.begun.sort()).toEqual(['one', 'two'])
  await w.end('one')
  expect(w.begun).toEqual(['one', 'two', 'one'])
})

test('a limit of 1 is served in order of nominal time, also when one has to be tried again', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const retry = { backoff: { type: 'fixed', initial: '1m', jitter: 0 } } as const
  await createAll(kit, ['a', 'b', 'c'], { concurrency: { key: 'acme', limit: 1 }, retry })
  await w.settle()
  await w.end('a', new Error('not yet'))
  expect(w.begun).toEqual(['a'])
  kit.clock.advance(2 * MINUTE)
  await w.settle()
  expect(w.begun).toEqual(['a', 'a'])
  for (const name of ['a', 'b', 'c']) await w.end(name)
  expect(w.begun).toEqual(['a', 'a', 'b', 'c'])
})

test('a run that waits between attempts holds no slot where more than one may be performed', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  await createAll(kit, ['a', 'b', 'c'], { concurrency: { key: 'acme', limit: 2 } })
  await w.settle()
  await w.end('a', new Error('not yet'))
  expect(w.begun).toEqual(['a', 'b', 'c'])
})

test('runs of a paused queue keep nobody waiting, and go on when it does', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const other = await atWork(kit, 'paused')
  const queues = (await kit.tenant('default')).queues
  const concurrency = { key: 'acme', limit: 1 }
  await queues.pause('paused')
  await createAll(kit, ['a'], { queue: 'paused', concurrency })
  await createAll(kit, ['b', 'c'], { concurrency })
  await w.settle()
  expect([w.begun, other.begun]).toEqual([['b'], []])
  await queues.resume('paused')
  await w.end('b')
  expect([w.begun, other.begun]).toEqual([['b'], ['a']])
  await other.end('a')
  expect(w.begun).toEqual(['b', 'c'])
})

test('what finds no slot under skip ends as skipped, and says why', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const [, second] = await createAll(kit, ['a', 'b'], { concurrency: { key: 'acme', limit: 1, onLimit: 'skip' } })
  await w.settle()
  expect(w.begun).toEqual(['a'])
  const { items } = await kit.runs.list({ jobId: second as string })
  const run = await kit.runs.get(items[0]?.id as string)
  const error = 'the only slot of the key "acme" was taken'
  expect(run).toMatchObject({ status: 'skipped', attempts: [{ number: 0, counted: false, error }] })
})

test('under cancel_oldest the oldest is asked to stop, and the new one starts when it has', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const concurrency = { key: 'acme', limit: 2, onLimit: 'cancel_oldest' }
  await createAll(kit, ['a', 'b'], { concurrency })
  await w.settle()
  await createAll(kit, ['c'], { concurrency })
  await w.settle()
  expect(w.begun).toEqual(['a', 'b'])
  expect([w.isAskedToStop('a'), w.isAskedToStop('b')]).toEqual([true, false])
  await w.end('a')
  expect(w.begun).toEqual(['a', 'b', 'c'])
})

test('what waits for a slot can be canceled, and the next one goes on', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const [, second] = await createAll(kit, ['a', 'b', 'c'], { concurrency: { key: 'acme', limit: 1 } })
  await w.settle()
  await kit.jobs.cancel(String(second))
  await w.end('a')
  expect(w.begun).toEqual(['a', 'c'])
  expect(await kit.jobs.get(String(second))).toMatchObject({ status: 'canceled' })
})

test('a limit that is raised lets more start at once, one that is lowered none until enough have ended', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const job = await kit.jobs.create({
    queue: 'mail',
    payload: 'x',
    cron: '0 0 1 6 *',
    concurrency: { key: 'acme', limit: 1 },
  })
  await createAll(kit, LETTERS, { concurrency: { key: 'acme', limit: 1 } })
  await w.settle()
  expect(w.begun).toEqual(['a'])
  await kit.jobs.update(job.jobId, { concurrency: { key: 'acme', limit: 3 } })
  await w.settle()
  expect(w.begun).toEqual(['a', 'b', 'c'])
  await kit.jobs.update(job.jobId, { concurrency: { key: 'acme', limit: 2 } })
  await w.end('a')
  expect(w.begun).toEqual(['a', 'b', 'c'])
  await w.end('b')
  expect(w.begun).toEqual(['a', 'b', 'c', 'd'])
})

test('the key of a job cannot be changed, taken away or given later', async () => {
  const { kit } = await startKit()
  const cron = '0 0 1 1 *'
  const keyed = await kit.jobs.create({ queue: 'mail', payload: 1, cron, concurrency: { key: 'acme', limit: 1 } })
  const plain = await kit.jobs.create({ queue: 'mail', payload: 1, cron })
  const code = { code: 'invalid_job' }
  await expect(kit.jobs.update(keyed.jobId, { concurrency: { key: 'other', limit: 1 } })).rejects.toMatchObject(code)
  await expect(kit.jobs.update(keyed.jobId, { concurrency: null } as never)).rejects.toMatchObject(code)
  await expect(kit.jobs.update(plain.jobId, { concurrency: { key: 'acme', limit: 1 } })).rejects.toMatchObject(code)
  await kit.jobs.update(plain.jobId, { concurrency: { limit: 1 } })
})

test('a key whose row is gone gets it from the definition of what is claimed', async () => {
  const { kit, query } = await startKit()
  const w = await atWork(kit)
  await createAll(kit, ['a', 'b'], { concurrency: { key: 'acme', limit: 1 } })
  await query('delete from limits')
  await w.settle()
  expect(w.begun).toEqual(['a'])
  expect(await query('select name, max_running, tenant_id from limits')).toEqual([
    { name: 'acme', max_running: 1, tenant_id: 1 },
  ])
})

test('a paused key lets nothing start, and goes on when it is not paused any more', async () => {
  const { kit, query } = await startKit()
  const w = await atWork(kit)
  await createAll(kit, ['a', 'b'], { concurrency: { key: 'acme', limit: 1, onLimit: 'skip' } })
  await query('update limits set paused_at = now()')
  await w.settle()
  expect(w.begun).toEqual([])
  expect(await query('select state from runs')).toEqual([{ state: RUN_STATE.limited }, { state: RUN_STATE.limited }])
  await query('update limits set paused_at = null')
  await w.settle()
  expect(w.begun).toEqual(['a'])
})

test('a worker that dies with the only slot holds it until its lease is over', async () => {
  const { kit } = await startKit({ leaseMs: 30_000 })
  const w = await atWork(kit)
  await createAll(kit, ['a', 'b'], { concurrency: { key: 'acme', limit: 1 }, retry: { maxAttempts: 1 } })
  await kit.pulse()
  await kit.claim('mail')
  expect(w.begun).toEqual(['a'])
  // Nothing keeps its lease while time passes.
  kit.clock.advance(31 * SECOND)
  await kit.pulse()
  await kit.reap()
  await w.settle()
  expect(w.begun).toEqual(['a', 'b'])
})

test('a run that waits for a slot says of which key, and who has it', async () => {
  const { kit } = await startKit()
  const w = await atWork(kit)
  const [first, second] = await createAll(kit, ['a', 'b'], { concurrency: { key: 'acme', limit: 1 } })
  await w.settle()
  const [holder] = (await kit.runs.list({ jobId: first as string })).items
  const [waiting] = (await kit.runs.list({ jobId: second as string })).items
  expect(waiting).toMatchObject({ status: 'blocked' })
  const limitedBy = { key: 'acme', limit: 1, rate: null, heldBy: [holder?.id] }
  expect(await kit.runs.get(waiting?.id as string)).toMatchObject({ limitedBy })
  const { jobs } = await kit.tenant('default')
  const explained = await jobs.explain(second as string, waiting?.nominalAt.toISOString() as string)
  expect(explained).toMatchObject({ verdict: 'waiting', reason: 'key_limited' })
  expect(explained.sentence).toContain(`waits for a slot of the key "acme", which has 1; held by ${holder?.id}`)
})
