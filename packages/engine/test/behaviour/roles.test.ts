import { expect, inject, onTestFinished, test } from 'vitest'
import { Jobs } from '../../src/jobs.ts'
import { Engine } from '../../src/node/engine.ts'
import { SystemClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import type { Role } from '../../src/shards/roles.ts'
import { Database } from '../../src/store/database.ts'
import { prepareSchema } from '../../src/store/prepare-schema.ts'
import { createDatabase, today } from '../database.ts'
import { startTarget } from './http-kit.ts'

const DUE_SOON = { delay: 'PT0.1S' }

/** Nodes that live by themselves, each with the roles it is given. */
async function setup() {
  const database = await createDatabase({ days: today() })
  onTestFinished(() => database.drop())
  const target = await startTarget({ now: () => 0 })
  const start = async (...roles: Role[]) => {
    const connection = inject('postgres')
    const db = new Database({ connection, schema: database.schema, logger: silentLogger })
    const { shards } = await prepareSchema(db, 4, silentLogger)
    const engine = new Engine({
      db,
      clock: new SystemClock(),
      random: systemRandom,
      logger: silentLogger,
      shards,
      leaseMs: 30_000,
      cancelGraceMs: 10_000,
      historyDays: 400,
      allowPrivateTargets: true,
      roles,
    })
    await engine.partitioner.ensure()
    await engine.pulse.runOnce()
    engine.start()
    onTestFinished(async () => {
      await engine.stop(0)
      await db.close()
    })
    return { engine, jobs: new Jobs(engine) }
  }
  const states = async () =>
    (await database.query<{ state: number }>('select state from runs')).map(({ state }) => state)
  return { ...database, target, start, states }
}

test('a node that only answers creates jobs; a promoter makes runs of them; a dispatcher performs them', async () => {
  const t = await setup()
  const api = await t.start('api')
  await api.jobs.create({ http: { url: t.target.url }, ...DUE_SOON })
  await api.jobs.create({ queue: 'work', ...DUE_SOON })
  await t.start('promoter')
  await expect.poll(t.states).toEqual([0, 0])
  expect(t.target.seen).toEqual([])
  await t.start('dispatcher')
  await expect.poll(t.states).toEqual([0])
  expect(t.target.seen).toHaveLength(1)
})

test('a handler of this process is performed whatever the roles of its node are', async () => {
  const t = await setup()
  const api = await t.start('api')
  await api.jobs.create({ queue: 'work' })
  let calls = 0
  api.engine.handle(await api.engine.registry.queueId(1, 'work'), () => void calls++, 1)
  await expect.poll(() => calls).toBe(1)
})
