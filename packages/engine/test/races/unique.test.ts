import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { MINUTE, setup } from './setup.ts'

type Unique = NonNullable<JobInput['unique']>

const job = (unique: Omit<Unique, 'key'> = {}, rest: Partial<JobInput> = {}): JobInput => ({
  queue: 'work',
  payload: 1,
  unique: { key: 'k', ...unique },
  ...rest,
})

const refusedOf = (results: PromiseSettledResult<unknown>[]) => results.filter(({ status }) => status === 'rejected')

test('of many who create under the same key at once, on two nodes, exactly one makes the job', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const kept = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? a : b).jobs.create(job())))
  expect(kept.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1)
  expect(new Set(kept.map(({ jobId }) => jobId)).size).toBe(1)
  const other = { queue: 'work', payload: 1, unique: { key: 'r', onConflict: 'reject' } } as const
  const rejected = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? a : b).jobs.create(other)),
  )
  expect(refusedOf(rejected)).toHaveLength(19)
  expect(refusedOf(rejected)[0]).toMatchObject({ reason: { code: 'unique_conflict' } })
  expect(await t.query('select from runs')).toHaveLength(2)
})

test('a create that waits for another transaction under the same key sees what that did', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [one, other] = [await t.connect(), await t.connect()]
  await one.query('begin')
  const first = await a.jobs.create(job(), { tx: one })
  await other.query('begin')
  const waits = b.jobs.create(job(), { tx: other })
  await t.untilBlocked()
  await one.query('commit')
  expect(await waits).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await other.query('commit')
  await one.query('begin')
  const undone = await a.jobs.create({ ...job(), unique: { key: 'undone' } }, { tx: one })
  const next = b.jobs.create({ ...job(), unique: { key: 'undone' } })
  await t.untilBlocked()
  await one.query('rollback')
  expect(await next).toMatchObject({ deduplicated: false })
  expect((await next).jobId).not.toBe(undone.jobId)
})

test('a create that comes while the job ends is answered by it, or makes the next: never both, never neither', async () => {
  const t = await setup()
  const node = await t.startNode()
  let letGo = () => {}
  await node.handle('work', () => new Promise<void>((resolve) => (letGo = resolve)))
  const first = await node.jobs.create(job())
  await node.claim('work')
  const held = await t.holdAt('delete', 'runs', first.jobId)
  letGo()
  await t.untilBlocked()
  // Its end is not committed: it still counts.
  expect(await node.jobs.create(job())).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await held.release()
  await node.engine.handlers.settled()
  expect(await node.jobs.create(job())).toMatchObject({ deduplicated: false })
})

test('of a create and a retry under the same key one goes first, and the other is told so', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  await a.handle('work', () => {
    throw new Error('no')
  })
  const reject = job({ onConflict: 'reject' }, { retry: { maxAttempts: 1 } })
  for (let round = 0; round < 5; round++) {
    const { jobId } = await a.jobs.create({ ...reject, unique: { key: `k${round}`, onConflict: 'reject' } })
    await a.claim('work')
    await a.engine.handlers.settled()
    const [run] = (await a.runs.list({ jobId })).items
    const both = await Promise.allSettled([
      b.jobs.create({ ...reject, unique: { key: `k${round}`, onConflict: 'reject' }, delay: '1h' }),
      a.runs.retry(run?.id as string),
    ])
    expect(refusedOf(both)).toMatchObject([{ reason: { code: 'unique_conflict' } }])
    const living = await t.query(
      `select job_id from runs where job_id = $1 union all
       select t.job_id from timers t join specs s on s.job_id = t.job_id where s.definition -> 'unique' ->> 'key' = $2`,
      [jobId, `k${round}`],
    )
    expect(living).toHaveLength(1)
    await a.claim('work')
    await a.engine.handlers.settled()
  }
})

test('a replacement that meets the lease of the run waits for it, and is refused or makes another job', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const seen: unknown[] = []
  await a.handle('work', (run) => new Promise(() => seen.push(run.payload)))
  const first = await a.jobs.create(job())
  const held = await t.holdAt('update', 'runs', first.jobId)
  const claiming = a.claim('work')
  await t.untilBlocked()
  const create = b.jobs.create(job({ onConflict: 'replace' }, { payload: 2 }))
  const refused = expect(create).rejects.toMatchObject({ code: 'unique_conflict' })
  await t.untilBlocked(2)
  await held.release()
  await claiming
  await refused
  const second = await b.jobs.create(job({ onConflict: 'replace', while: 'queued' }, { payload: 3 }))
  expect(second.deduplicated).toBe(false)
  expect(seen).toEqual([1])
  expect(await t.query('select from runs')).toHaveLength(2)
})

test('a replacement that waits for the promotion of the job takes its run back', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const first = await a.jobs.create(job({}, { delay: '1m' }))
  for (const node of [a, b]) node.clock.advance(MINUTE)
  await a.readTimers()
  const held = await t.holdAt('delete', 'timers', first.jobId)
  const promoting = a.promote()
  await t.untilBlocked()
  const replacing = b.jobs.create(job({ onConflict: 'replace' }, { payload: 2, delay: '1m' }))
  await t.untilBlocked(2)
  await held.release()
  await promoting
  expect(await replacing).toMatchObject({ jobId: first.jobId, replaced: true })
  expect(await t.query('select from runs')).toEqual([])
  const timers = await t.query('select job_id, nominal_at from timers')
  expect(timers).toEqual([{ job_id: first.jobId, nominal_at: new Date(b.clock.now() + MINUTE) }])
})
