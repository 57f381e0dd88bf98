import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createOnceTable, forgetOnce, once } from './once.ts'

const RUN = '019a0b1c-2d3e-7004-8f5a-6b7c8d9e0f1a.mif1k8w0'

/** A schema with a table of effects, and as many connections to it as asked for. */
async function setup() {
  const schema = `once_${randomBytes(6).toString('hex')}`
  const connect = async () => {
    const client = new pg.Client({ ...inject('postgres'), options: `-c search_path=${schema}` })
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }
  const client = await connect()
  await client.query(`create schema ${schema}`)
  onTestFinished(async () => void (await client.query(`drop schema ${schema} cascade`)))
  await createOnceTable(client)
  await client.query('create table effects (what text)')
  const effects = async () => (await client.query<{ what: string }>('select what from effects')).rows.map((r) => r.what)
  const begin = async () => {
    const tx = await connect()
    await tx.query('begin')
    return tx
  }
  const write = (tx: pg.Client, what: string) => () => tx.query('insert into effects values ($1)', [what])
  return { client, connect, begin, effects, write }
}

test('the second time nothing is done, and the first result is the answer', async () => {
  const t = await setup()
  const first = await t.begin()
  const effect = async () => {
    await t.write(first, 'mail')()
    return { sent: 1, text: 'a\u0000b' }
  }
  expect(await once(first, RUN, effect)).toEqual({ alreadyDone: false, result: { sent: 1, text: 'a\u0000b' } })
  await first.query('commit')
  const second = await t.begin()
  const again = await once(second, RUN, t.write(second, 'mail again'))
  await second.query('commit')
  expect(again).toEqual({ alreadyDone: true, result: { sent: 1, text: 'a\u0000b' }, doneAt: expect.any(Date) })
  expect(await t.effects()).toEqual(['mail'])
})

test('a run without a result is remembered as well; another run is another', async () => {
  const t = await setup()
  const tx = await t.begin()
  expect(await once(tx, RUN, () => {})).toEqual({ alreadyDone: false, result: undefined })
  expect(await once(tx, RUN, () => {})).toMatchObject({ alreadyDone: true, result: undefined })
  expect(await once(tx, `${RUN}1`, () => 'other')).toEqual({ alreadyDone: false, result: 'other' })
})

test('a rollback forgets', async () => {
  const t = await setup()
  const first = await t.begin()
  await once(first, RUN, t.write(first, 'lost'))
  await first.query('rollback')
  const second = await t.begin()
  expect(await once(second, RUN, t.write(second, 'kept'))).toMatchObject({ alreadyDone: false })
  await second.query('commit')
  expect(await t.effects()).toEqual(['kept'])
})

test.each(['commit', 'rollback'])('who comes while another performs the run waits for its %s', async (end) => {
  const t = await setup()
  const [first, second] = [await t.begin(), await t.begin()]
  await once(first, RUN, async () => {
    await t.write(first, 'first')()
    return 'of the first'
  })
  const waiting = once(second, RUN, async () => {
    await t.write(second, 'second')()
    return 'of the second'
  })
  await untilItWaits(t.client, second)
  await first.query(end)
  const outcome = await waiting
  await second.query('commit')
  const isDone = end === 'commit'
  expect(outcome).toMatchObject({ alreadyDone: isDone, result: isDone ? 'of the first' : 'of the second' })
  expect(await t.effects()).toEqual([isDone ? 'first' : 'second'])
})

test('ten at once perform it once', async () => {
  const t = await setup()
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, async (_, i) => {
      const tx = await t.begin()
      const outcome = await once(tx, RUN, async () => {
        await t.write(tx, `by ${i}`)()
        return i
      })
      await tx.query('commit')
      return outcome
    }),
  )
  expect(outcomes.filter(({ alreadyDone }) => !alreadyDone)).toHaveLength(1)
  expect(new Set(outcomes.map(({ result }) => result)).size).toBe(1)
  expect(await t.effects()).toHaveLength(1)
})

test('what fails leaves nothing, even if its caller commits', async () => {
  const t = await setup()
  const tx = await t.begin()
  await tx.query("insert into effects values ('before')")
  const broken = once(tx, RUN, async () => {
    await t.write(tx, 'half')()
    throw new Error('no mail server')
  })
  await expect(broken).rejects.toThrow('no mail server')
  // The same for an error of the database, after which nothing else would be accepted.
  await expect(once(tx, RUN, () => tx.query('select 1/0'))).rejects.toMatchObject({ code: '22012' })
  await tx.query('commit')
  expect(await t.effects()).toEqual(['before'])
  const next = await t.begin()
  expect(await once(next, RUN, t.write(next, 'whole'))).toMatchObject({ alreadyDone: false })
})

test('a result that no JSON can hold undoes the work instead of doing it without a record', async () => {
  const t = await setup()
  const tx = await t.begin()
  const outcome = once(tx, RUN, async () => {
    await t.write(tx, 'half')()
    return 1n
  })
  await expect(outcome).rejects.toThrow(TypeError)
  await tx.query('commit')
  expect(await t.effects()).toEqual([])
})

test('without a transaction, or on a pool, it refuses before anything is done', async () => {
  const t = await setup()
  const outside = once(t.client, RUN, t.write(t.client, 'twice'))
  await expect(outside).rejects.toMatchObject({ name: 'ReceiverError', code: 'no_transaction' })
  const pool = new pg.Pool(inject('postgres'))
  onTestFinished(() => pool.end())
  await expect(once(pool, RUN, () => {})).rejects.toMatchObject({ code: 'no_transaction' })
  expect(await t.effects()).toEqual([])
})

test('the table may be made by many at once, again and again', async () => {
  const t = await setup()
  await t.client.query('drop table belfry_once')
  const clients = await Promise.all(Array.from({ length: 8 }, t.connect))
  await Promise.all(clients.map((client) => createOnceTable(client)))
  await createOnceTable(t.client)
  expect((await t.client.query('select 1 from belfry_once')).rows).toEqual([])
})

test('what was done long ago can be forgotten', async () => {
  const t = await setup()
  await t.client.query(
    `insert into belfry_once (run_id, done_at) values ('old', now() - interval '91 days'), ('new', now() - interval '89 days')`,
  )
  expect(await forgetOnce(t.client)).toEqual({ forgotten: 1 })
  expect(await forgetOnce(t.client, { olderThanDays: 1 })).toEqual({ forgotten: 1 })
})

async function untilItWaits(watcher: pg.Client, waiting: pg.Client): Promise<void> {
  const { processID } = waiting as unknown as { processID: number }
  const sql = `select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`
  while ((await watcher.query(sql, [processID])).rows.length === 0) await watcher.query('select pg_sleep(0.005)')
}
