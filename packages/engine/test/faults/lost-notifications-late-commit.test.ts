import { expect, test } from 'vitest'
import { shardOfJob } from '../../src/job/ids.ts'
import { setup } from '../races/setup.ts'

const SECOND = 1_000
/** How long the transaction stays open after its jobs were due: far past the 10 s by which look-ahead trails now. */
const HELD_SECONDS = 30
/** A pulse each. */
const STARTS_WITHIN_SECONDS = 2

test('a job whose transaction commits 30 s after its time is promoted within 2 s, though nobody hears of it', async () => {
  const t = await setup()
  // Nodes of the kit listen to nothing: every NOTIFY is lost.
  const [node, creator] = [await t.startNode(), await t.startNode()]
  const second = async () => {
    for (const { clock } of [node, creator]) clock.advance(SECOND)
    await node.engine.pulse.runOnce()
    node.engine.reader.own([0, 1])
    await node.readTimers()
    await node.promote()
  }
  // Something is due every second in both shards, so that look-ahead has long been past the time of the late ones.
  await node.jobs.createMany(Array.from({ length: 8 }, () => ({ queue: 'often', every: 'PT1S', overlap: 'skip' })))
  const client = await t.connect()
  await client.query('begin')
  const late: string[] = []
  const dueAt = creator.clock.now()
  for (let i = 0; i < 8; i++) late.push((await creator.jobs.create({ queue: 'work' }, { tx: client })).jobId)
  expect(new Set(late.map(shardOfJob)).size).toBe(2)

  for (let i = 0; i < HELD_SECONDS; i++) await second()
  for (const shard of [0, 1]) expect(node.engine.reader.watermark(shard)).toBeGreaterThan(dueAt + 15 * SECOND)
  const started = async () => {
    const rows = await t.query<{ job_id: string }>('select job_id from runs where job_id = any($1)', [late])
    return rows.length
  }
  expect(await started()).toBe(0)
  await client.query('commit')
  await second()
  if ((await started()) < late.length) for (let i = 1; i < STARTS_WITHIN_SECONDS; i++) await second()
  expect(await started()).toBe(late.length)
})
