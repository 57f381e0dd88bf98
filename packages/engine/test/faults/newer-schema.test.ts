import { once } from 'node:events'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry, type Run, silentLogger } from '../../src/index.ts'
import { parseMigration } from '../../src/store/migrations.ts'
import { loadMigrations, migrate } from '../../src/store/migrator.ts'
import { createDatabase, today } from '../database.ts'

/** A node, and a newer program that changes the schema while the node is at work. */
async function setup() {
  const { schema, query, pool, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  let drains = () => {}
  const isDraining = new Promise<void>((resolve) => {
    drains = resolve
  })
  const logger = { ...silentLogger, error: (message: string) => message === 'this node drains and ends' && drains() }
  const belfry = await Belfry.start({ database: inject('postgres'), schema, logger, drainMs: 500 })
  onTestFinished(() => belfry.stop())
  const apply = async (sql: string) => {
    const known = await loadMigrations()
    const later = parseMigration(`${String(known.length + 1).padStart(4, '0')}_later.sql`, sql)
    const client = await pool.connect()
    const migrations = [...known, later]
    await migrate(client, { schema, migrations, logger: silentLogger }).finally(() => client.release())
    return { newest: later.number, known: known.length }
  }
  const schemaCheck = async () => (await belfry.readiness()).checks.find(({ name }) => name === 'schema')
  return { belfry, schema, query, isDraining, apply, schemaCheck }
}

test.each([
  ['that the pulse does not notice', 'create table later (a int);'],
  ['that breaks the pulse itself', 'alter table nodes rename column charges to weights;'],
])('a node that meets a breaking migration %s takes nothing more, drains and says why it ended', async (_, sql) => {
  const t = await setup()
  const begun: string[] = []
  t.belfry.handle('short', async ({ id }) => {
    begun.push(id)
    await t.isDraining
  })
  const long = async ({ id, signal }: Run) => {
    begun.push(id)
    await once(signal, 'abort')
  }
  t.belfry.handle('long', long, { concurrency: 1 })
  const short = await t.belfry.jobs.create({ queue: 'short' })
  const given = await t.belfry.jobs.createMany([{ queue: 'long' }, { queue: 'long' }])
  await expect.poll(() => begun).toHaveLength(2)

  const { newest, known } = await t.apply(`-- breaking\n${sql}`)
  const why =
    `schema "${t.schema}" is at migration ${newest}, this Belfry knows them up to ${known} and cannot work with ${newest}; ` +
    'start the newer Belfry that made it, or give this one a schema or database of its own'
  expect(await t.schemaCheck()).toEqual({ name: 'schema', ok: false, detail: why })
  expect((await t.belfry.readiness()).ready).toBe(false)
  expect(await t.belfry.ended).toMatchObject({ code: 'schema_too_new', message: why })

  expect(begun).toHaveLength(2)
  const attempts = await t.query('select job_id, outcome, counted from attempts order by outcome')
  expect(attempts).toMatchObject([{ job_id: short.jobId, outcome: 1, counted: true }, { counted: false }])
  const left = await t.query('select job_id from runs where holder is null')
  expect(left).toHaveLength(given.length)
  await expect(t.belfry.jobs.create({ queue: 'short' })).rejects.toMatchObject({ code: 'stopped' })
})

test('a node goes on beside a newer schema that is not breaking, and ends only when it is stopped', async () => {
  const t = await setup()
  await t.apply('create table later (a int);')
  const pulsedAt = async () => (await t.query<{ at: Date }>('select pulsed_at as at from nodes'))[0]?.at.getTime() ?? 0
  const before = await pulsedAt()
  await expect.poll(pulsedAt).toBeGreaterThan(before)
  expect(await t.schemaCheck()).toEqual({ name: 'schema', ok: true })
  const performed: string[] = []
  t.belfry.handle('work', ({ jobId }) => void performed.push(jobId))
  const { jobId } = await t.belfry.jobs.create({ queue: 'work' })
  await expect.poll(() => performed).toEqual([jobId])
  await t.belfry.stop()
  expect(await t.belfry.ended).toBe(null)
})
