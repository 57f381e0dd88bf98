import { expect, test } from 'vitest'
import { SKIP_REASON } from '../../src/job/states.ts'
import { MINUTE, type Node, START, setup } from './setup.ts'

const EVERY_TEN = { every: 'PT10M', startAt: new Date(START + 10 * MINUTE), queue: 'reports', payload: 1 } as const
const nominal = (minute: number): Date => new Date(START + minute * MINUTE)

test('two promoters of one shard that read the same timers make each run once', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const later = { queue: 'reports', payload: 1, delay: '10m' }
  const jobs = await a.jobs.createMany([...Array(20).fill(EVERY_TEN), ...Array(20).fill(later)])
  for (const node of [a, b]) {
    node.clock.advance(10 * MINUTE)
    await node.readTimers()
  }
  await Promise.all([a.promote(), b.promote()])
  // Whoever did not get a timer looks at it again.
  for (const node of [a, b]) {
    await node.readTimers()
    await node.promote()
  }
  expect((await t.occurrences()).map(({ job_id }) => job_id)).toEqual(jobs.map(({ jobId }) => jobId).sort())
  expect(await t.query('select from skips')).toEqual([])
})

test('a promoter that meets timers which another is just promoting passes over them and does not wait', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [first] = await a.jobs.createMany(Array(10).fill(EVERY_TEN))
  for (const node of [a, b]) {
    node.clock.advance(10 * MINUTE)
    await node.readTimers()
  }
  const hold = await t.holdAt('insert', 'runs', first?.jobId ?? '')
  const promoting = a.promote()
  await t.untilBlocked()
  await b.promote()
  expect(await t.query('select from runs where job_id = $1', [first?.jobId])).toEqual([])
  await hold.release()
  await promoting
  await b.readTimers()
  await b.promote()
  expect(await t.occurrences()).toHaveLength(10)
})

test('no batch waits for a job that has to be decided alone', async () => {
  const t = await setup()
  const node = await t.startNode()
  const { jobId: last } = await node.jobs.create({ ...EVERY_TEN, maxRuns: 1 })
  const others = await node.jobs.createMany(Array(5).fill(EVERY_TEN))
  node.clock.advance(10 * MINUTE)
  await node.readTimers()
  const hold = await t.holdAt('insert', 'runs', last)
  await node.engine.promoter.runBatch()
  expect(await t.occurrences()).toHaveLength(others.length)
  const deciding = node.engine.promoter.runAlone()
  await t.untilBlocked()
  await hold.release()
  await deciding
  expect(await t.query('select nominal_at from runs where job_id = $1', [last])).toEqual([{ nominal_at: nominal(10) }])
})

test('a promoter whose timer was read before another promoted it changes nothing', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  await a.jobs.create(EVERY_TEN)
  for (const node of [a, b]) {
    node.clock.advance(10 * MINUTE)
    await node.readTimers()
  }
  await a.promote()
  const before = await t.query('select version, nominal_at from timers')
  await b.promote()
  expect(await t.query('select version, nominal_at from timers')).toEqual(before)
  expect(await t.occurrences()).toHaveLength(1)
})

test('an update and the promotion of the same nominal time make one run of it', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create(EVERY_TEN)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  await b.readTimers()
  const hold = await t.holdAt('insert', 'runs', jobId)
  const updating = a.jobs.update(jobId, { every: 'PT3M', startAt: new Date(START) })
  await t.untilBlocked()
  await b.promote()
  await hold.release()
  await updating
  await b.readTimers()
  await b.promote()
  expect((await t.occurrences()).map(({ nominal_at }) => nominal_at)).toEqual([nominal(10)])
  expect(await t.query('select nominal_at, decided_until from timers')).toEqual([
    { nominal_at: nominal(12), decided_until: nominal(10) },
  ])
})

test('an update that comes while the nominal time is being promoted decides nothing twice', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create(EVERY_TEN)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  await b.readTimers()
  const hold = await t.holdAt('insert', 'runs', jobId)
  const promoting = b.promote()
  await t.untilBlocked()
  const updating = a.jobs.update(jobId, { payload: 2 })
  await t.untilBlocked(2)
  await hold.release()
  await Promise.all([promoting, updating])
  expect((await t.occurrences()).map(({ nominal_at }) => nominal_at)).toEqual([nominal(10)])
  expect(await t.query('select job_version from runs')).toEqual([{ job_version: 2 }])
})

test('a pause and the promotion of the same nominal time make one run of it, and none after it', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create(EVERY_TEN)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  await b.readTimers()
  const hold = await t.holdAt('insert', 'runs', jobId)
  const pausing = a.jobs.pause(jobId)
  await t.untilBlocked()
  await b.promote()
  await hold.release()
  await pausing
  b.clock.advance(10 * MINUTE)
  await b.readTimers()
  await b.promote()
  expect((await t.occurrences()).map(({ nominal_at }) => nominal_at)).toEqual([nominal(10)])
  expect(await t.query('select from skips')).toEqual([])
})

test.each([
  ['pause', (node: Node, jobId: string) => node.jobs.pause(jobId)],
  ['cancel', (node: Node, jobId: string) => node.jobs.cancel(jobId)],
  ['update', (node: Node, jobId: string) => node.jobs.update(jobId, { every: 'PT1H', startAt: new Date(START) })],
])('a promotion that read the timer before a %s was committed makes no run afterwards', async (_, change) => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create(EVERY_TEN)
  b.clock.advance(10 * MINUTE)
  await b.readTimers()
  // The clock of whoever changes the job has not reached the nominal time.
  await change(a, jobId)
  await b.promote()
  await b.readTimers()
  await b.promote()
  expect(await t.occurrences()).toEqual([])
})

test('a pause that comes between the snapshot of a promotion and its look at the timer wins', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [first, second] = (await a.jobs.createMany([EVERY_TEN, EVERY_TEN])).sort(inLockOrder)
  b.clock.advance(10 * MINUTE)
  await b.readTimers()
  const hold = await t.holdAt('update', 'timers', first?.jobId ?? '')
  const promoting = b.promote()
  await t.untilBlocked()
  // The pauser's clock has not reached the nominal time: it decides nothing, and nobody may any more.
  await a.jobs.pause(second?.jobId ?? '')
  await hold.release()
  await promoting
  await b.readTimers()
  await b.promote()
  expect((await t.occurrences()).map(({ job_id }) => job_id)).toEqual([first?.jobId])
})

test('a trigger that comes between the snapshot of a promotion and its look at the timer counts as overlap', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [first, second] = (await a.jobs.createMany([EVERY_TEN, EVERY_TEN])).sort(inLockOrder)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE + 5)
  await b.readTimers()
  const hold = await t.holdAt('update', 'timers', first?.jobId ?? '')
  const promoting = b.promote()
  await t.untilBlocked()
  const { runId } = await a.jobs.trigger(second?.jobId ?? '')
  await hold.release()
  await promoting
  await b.readTimers()
  await b.promote()
  const runs = await t.query<{ job_id: string; cause: number }>('select job_id, cause from runs order by cause')
  expect(runs).toEqual([
    { job_id: first?.jobId, cause: 0 },
    { job_id: second?.jobId, cause: 2 },
  ])
  expect(runId.startsWith(second?.jobId ?? '')).toBe(true)
  expect(await t.query('select job_id, from_nominal, reason from skips')).toEqual([
    { job_id: second?.jobId, from_nominal: nominal(10), reason: SKIP_REASON.overlap },
  ])
})

test('a trigger that waits for a promotion of an overlap-skip job is refused', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create(EVERY_TEN)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  await b.readTimers()
  const hold = await t.holdAt('insert', 'runs', jobId)
  const promoting = b.promote()
  await t.untilBlocked()
  const triggering = a.jobs.trigger(jobId)
  const refused = expect(triggering).rejects.toMatchObject({ code: 'overlap' })
  await t.untilBlocked(2)
  await hold.release()
  await promoting
  await refused
  expect(await t.occurrences()).toHaveLength(1)
})

test('a job that is triggered without pause is still promoted', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...EVERY_TEN, overlap: 'allow' })
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  // Between every look at the timer and its promotion the row changes.
  for (let round = 0; round < 2; round++) {
    await b.readTimers()
    await a.jobs.trigger(jobId)
    await b.promote()
  }
  const scheduled = await t.query('select nominal_at from runs where cause = 0')
  expect(scheduled).toEqual([{ nominal_at: nominal(10) }])
})

test('a job that another process triggers in a tight loop is still promoted', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...EVERY_TEN, overlap: 'allow' })
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  let looping = true
  const loop = (async () => {
    while (looping) await a.jobs.trigger(jobId)
  })()
  const scheduled = () => t.query('select from runs where cause = 0')
  for (let round = 0; round < 20 && (await scheduled()).length === 0; round++) {
    await b.readTimers()
    await b.promote()
  }
  looping = false
  await loop
  expect(await scheduled()).toHaveLength(1)
})

/** As a batch takes its rows. */
function inLockOrder(one: { jobId: string }, other: { jobId: string }): number {
  const shard = ({ jobId }: { jobId: string }) => jobId.slice(15, 18)
  return shard(one).localeCompare(shard(other)) || (one.jobId < other.jobId ? -1 : 1)
}
