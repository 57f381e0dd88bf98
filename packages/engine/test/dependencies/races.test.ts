import { expect, inject, onTestFinished, test } from 'vitest'
import { deliver } from '../../src/dependencies/deliver.ts'
import { Turns } from '../../src/ready/turn.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Database, type Transaction } from '../../src/store/database.ts'
import { startTestKit } from '../../src/testing/index.ts'
import { FABRICATED } from '../watch-moves.ts'
import { after, job, setup } from './setup.ts'

/** None of these jobs has a unique key. */
const reopening = { retakeUnique: async () => {}, queueIdOf: async () => 1 }

async function setupRace() {
  const t = await setup()
  const db = new Database({
    connection: inject('postgres'),
    schema: t.kit.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  const turns = new Turns()
  const now = t.kit.clock.now()
  const deliverSome = (limit: number) => deliver({ ...reopening, db, turns }, { now, limit })
  const stateOf = async (jobId: string | undefined) =>
    (await t.query<{ state: number }>('select state from runs where job_id = $1', [jobId]))[0]?.state ?? null
  /** Performs what is ready, and tells nobody. */
  const perform = async () => {
    await t.kit.pulse()
    await t.kit.claim('work')
    await expect.poll(() => t.query('select from runs where state = 1')).toEqual([])
  }
  return { ...t, db, turns, now, deliverSome, stateOf, perform }
}

const READY = 0
const DEPENDENT = 5

test('two parents that end at the same moment wake their child exactly once, whoever delivers what', async () => {
  const t = await setupRace()
  const families = 8
  const call = Array.from({ length: families }, (_, i) => [
    job(`a${i}`),
    job(`b${i}`),
    job(`c${i}`, after(`a${i}`, `b${i}`)),
  ])
  const ids = await t.create(...call.flat())
  await t.perform()
  await t.perform()
  expect(await t.query('select from outbox')).toHaveLength(2 * families)
  let released = 0
  while ((await t.query('select from outbox')).length > 0) {
    const done = await Promise.all([t.deliverSome(1), t.deliverSome(1), t.deliverSome(3), t.deliverSome(100)])
    released += done.reduce((sum, { ready }) => sum + ready.length, 0)
  }
  expect(released).toBe(families)
  for (let i = 0; i < families; i++) expect(await t.stateOf(ids[`c${i}`])).toBe(READY)
})

test('a child that somebody holds is told later, and its parent’s other children now', async () => {
  const t = await setupRace()
  const ids = await t.create(job('a'), job('held', after('a')), job('free', after('a')))
  await t.perform()
  const client = await t.pool.connect()
  await client.query('begin')
  await client.query('select from runs where job_id = $1 for update', [ids.held])
  expect(await t.deliverSome(100)).toMatchObject({ ends: 0, wasHeld: true, ready: [{ queueId: expect.any(Number) }] })
  expect([await t.stateOf(ids.held), await t.stateOf(ids.free)]).toEqual([DEPENDENT, READY])
  await client.query('commit')
  client.release()
  expect(await t.deliverSome(100)).toMatchObject({ ends: 1, wasHeld: false })
  expect(await t.stateOf(ids.held)).toBe(READY)
})

test('a key that somebody holds keeps its job from being opened again, and no other job from being told', async () => {
  const t = await setupRace()
  t.fails('j0')
  const jobs = Array.from({ length: 13 }, (_, i) => job(`j${i}`, i === 0 ? {} : after(`j${i - 1}`)))
  const ids = await t.create(...jobs.slice(0, 12), { ...(jobs[12] as object), unique: { key: 'u' } })
  await t.kit.settle()
  t.works('j0')
  await t.kit.runs.retry(String((await t.lastRun(ids.j0))?.id))
  const client = await t.pool.connect()
  await client.query('begin')
  await client.query("select from keys where key = 'u' for update")
  await t.create(job('p'), job('c', after('p')))
  await t.kit.settle()
  expect(t.seen()).toEqual(expect.arrayContaining(['c', 'j11']))
  expect(t.seen()).not.toContain('j12')
  await client.query('commit')
  client.release()
  t.kit.clock.advance(1_000)
  await t.kit.pulse()
  await t.kit.settle()
  expect(t.seen().at(-1)).toBe('j12')
})

test('children that somebody holds, however many, keep no others from being told', async () => {
  const t = await setupRace()
  const families = 251
  const call = Array.from({ length: families }, (_, i) => [job(`a${i}`), job(`b${i}`, after(`a${i}`))])
  await t.create(...call.flat())
  while ((await t.query('select from outbox')).length < families) await t.perform()
  const client = await t.pool.connect()
  await client.query('begin')
  await client.query(
    `select from runs where job_id in (
       select e.child from (select job_id from outbox order by shard, job_id limit ${families - 1}) o join edges e on e.parent = o.job_id) for update`,
  )
  for (let i = 0; i < 3; i++) await t.kit.deliver()
  expect(await t.query('select from outbox')).toHaveLength(families - 1)
  expect(await t.query(`select from runs where state = ${DEPENDENT}`)).toHaveLength(families - 1)
  await client.query('commit')
  client.release()
  await t.kit.deliver()
  expect(await t.query(`select from runs where state = ${DEPENDENT}`)).toEqual([])
})

test('a child is charged when it becomes ready, not each time a parent has ended', async () => {
  const t = await setupRace()
  const ids = await t.create(job('a'), job('b'), job('c', after('a', 'b')))
  await t.perform()
  await t.perform()
  let charged = 0
  const turns = { next: () => ++charged } as unknown as Turns
  while ((await t.query('select from outbox')).length > 0)
    await deliver({ ...reopening, db: t.db, turns }, { now: t.now, limit: 1 })
  expect([charged, await t.stateOf(ids.c)]).toEqual([1, READY])
})

test('a child that is canceled while it is told ends once, and its edge goes', async () => {
  const t = await setupRace()
  const ids = await t.create(job('a'), job('b', after('a')))
  await t.perform()
  const client = await t.pool.connect()
  await client.query(`begin; ${FABRICATED}`)
  await client.query('delete from runs where job_id = $1', [ids.b])
  expect(await t.deliverSome(100)).toMatchObject({ ends: 0, wasHeld: true })
  await client.query('commit')
  client.release()
  expect(await t.deliverSome(100)).toMatchObject({ ends: 1, ready: [] })
  expect(await t.query('select from edges')).toEqual([])
})

test('a child that is registered while its parent ends hears of it: before, at the same time and after', async () => {
  const t = await setupRace()
  const ids = await t.create(job('p'))
  const parent = String(ids.p)
  const client = await t.pool.connect()
  // Registered and not committed: the end of the parent waits for it.
  await client.query('begin')
  await t.kit.jobs.createMany([job('before', after(parent))], { tx: client })
  // At work, and its end is not committed while others register.
  let ended: () => void = () => {}
  const isEnding = new Promise<void>((resolve) => {
    ended = resolve
  })
  let goOn: () => void = () => {}
  const mayCommit = new Promise<void>((resolve) => {
    goOn = resolve
  })
  t.acts.set('p', async (run) => {
    const own = await t.pool.connect()
    await own.query('begin')
    await run.completeIn(own, 'done')
    ended()
    await mayCommit
    await own.query('commit')
    own.release()
  })
  await client.query('commit')
  client.release()
  await t.kit.pulse()
  await t.kit.claim('work')
  await isEnding
  const during = t.create(job('during', after(parent)))
  await expect
    .poll(
      () =>
        t.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%mark_awaited%' or wait_event = 'transactionid'`,
        ),
      {
        timeout: 10_000,
      },
    )
    .not.toEqual([])
  goOn()
  await during
  await t.create(job('after', after(parent)))
  await t.kit.settle()
  expect(t.seen().slice(1).sort()).toEqual(['after', 'before', 'during'])
})

test('what a killed node did not deliver, another delivers by its pulse', async () => {
  const t = await setupRace()
  await t.create(job('a'), job('b', after('a')))
  await t.perform()
  const other = await startTestKit({ database: inject('postgres'), schema: t.kit.schema, seed: 2 })
  onTestFinished(() => other.stop())
  const seen: unknown[] = []
  await other.handle('work', (run) => void seen.push(run.payload))
  await other.settle()
  expect(seen).toEqual(['b'])
})

test('a delivery that breaks off anywhere has not happened', async () => {
  const t = await setupRace()
  const ids = await t.create(
    job('a'),
    job('b', after('a')),
    job('c', { ...after('a'), after: { jobs: ['a'], on: 'failure' } }),
  )
  await t.perform()
  for (let survives = 1; ; survives++) {
    let sent = 0
    const breaking = {
      transaction: <Result>(work: (tx: Transaction) => Promise<Result>) =>
        t.db.transaction((tx) => {
          const count = () => {
            if (++sent > survives) throw new Error('killed')
          }
          const counted: Transaction = {
            query: (statement, values) => {
              count()
              return tx.query(statement, values)
            },
            execute: (statement, values) => {
              count()
              return tx.execute(statement, values)
            },
            setLockTimeout: (ms) => tx.setLockTimeout(ms),
            undoable: (inner) => tx.undoable(inner),
          }
          return work(counted)
        }),
    } as Database
    const done = await deliver({ ...reopening, db: breaking, turns: t.turns }, { now: t.now, limit: 10 }).catch(
      () => null,
    )
    if (done !== null) break
    expect([await t.stateOf(ids.b), await t.stateOf(ids.c)]).toEqual([DEPENDENT, DEPENDENT])
    expect(await t.query('select from outbox')).toHaveLength(1)
    expect(await t.query('select from edges')).toHaveLength(2)
  }
  expect([await t.stateOf(ids.b), await t.stateOf(ids.c)]).toEqual([READY, null])
})

test('two parents that are retried at the same moment open their child', async () => {
  const t = await setupRace()
  for (let round = 0; round < 5; round++) {
    const [a, b, c] = [`a${round}`, `b${round}`, `c${round}`]
    t.fails(a, b)
    const ids = await t.create(job(a), job(b), job(c, after(a, b)))
    await t.kit.settle()
    t.works(a, b)
    const runs = await Promise.all([t.lastRun(ids[a]), t.lastRun(ids[b])])
    await Promise.all(runs.map((run) => t.kit.runs.retry(String(run?.id))))
    expect(await t.stateOf(ids[c])).toBe(DEPENDENT)
    await t.kit.settle()
    expect(await t.status(ids[c])).toBe('succeeded')
  }
})

test('runs of a batch that are opened again hold nothing of it while another transaction tells of an end', async () => {
  const t = await setupRace()
  t.fails('p')
  const { jobs } = await t.kit.batches.create([job('p'), job('c', after('p'))])
  const [p, c] = jobs.map(({ jobId }) => jobId)
  await t.perform()
  // The failure of `p` is told: that ends `c`, and nobody has told of that yet.
  await t.deliverSome(1)
  t.works('p')
  const other = await t.pool.connect()
  onTestFinished(() => other.release(true))
  await other.query("begin; set local lock_timeout = '500ms'")
  expect((await other.query('select from outbox where job_id = $1 for update', [c])).rowCount).toBe(1)
  const opening = t.kit.runs.retry(String((await t.lastRun(p))?.id))
  const waiting = () => t.query("select from pg_stat_activity where wait_event_type = 'Lock' and query like '%outbox%'")
  const isWaiting = expect.poll(waiting, { interval: 5, timeout: 1_000 }).not.toEqual([])
  // It may have left that for later by now.
  await Promise.race([isWaiting.catch(() => {}), opening])
  // As whoever delivers an end: the rows of batches come after those of the outbox.
  expect((await other.query('select from batches for update')).rowCount).toBe(1)
  await other.query('rollback')
  await opening
  await t.kit.settle()
  expect(await t.query('select succeeded, failed, canceled from batches')).toEqual([
    { succeeded: 2, failed: 0, canceled: 0 },
  ])
})
