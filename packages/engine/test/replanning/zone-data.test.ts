import { expect, test } from 'vitest'
import type { Logger } from '../../src/runtime/logger.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import type { TestNode } from '../../src/testing/test-node.ts'
import { at, HOUR, startNodes } from './setup.ts'

/** As long as a node leaves its shards to whoever had them before. */
const SETTLE_MS = 5_000
/** Nine in Berlin is eight in UTC. */
const BERLIN = { queue: 'q', cron: '0 9 * * *', timezone: 'Europe/Berlin' }

async function setup(zoneData = '2026b') {
  const lines: { message: string; fields: unknown }[] = []
  const note = (message: string, fields: unknown) => {
    if (/zone/.test(message)) lines.push({ message, fields })
  }
  const logger: Logger = { ...silentLogger, info: note, warn: note }
  const t = await startNodes({ zoneData, logger })
  /** What older rules would have planned. */
  const plannedAs = (jobId: string, wrong: Date) =>
    t.query('update timers set nominal_at = $2, due_at = $2, version = version + 1 where job_id = $1', [jobId, wrong])
  const storedAs = (version: string) =>
    t.query(
      `insert into meta (key, value) select k, to_jsonb($1::text) from unnest(array['zone_data', 'zone_data:0', 'zone_data:1', 'zone_data:2', 'zone_data:3']) k
       on conflict (key) do update set value = excluded.value`,
      [version],
    )
  const stored = async () => {
    const rows = await t.query<{ key: string; value: string }>(
      `select key, value from meta where key like 'zone%' order by key`,
    )
    return Object.fromEntries(rows.map(({ key, value }) => [key, value]))
  }
  const nextOf = async (jobId: string) => (await t.timerOf(jobId))?.nominalAt
  return { ...t, lines, plannedAs, storedAs, stored, nextOf }
}

/** Everything that the node has to do about zones now. */
async function keepZones({ engine }: TestNode): Promise<void> {
  await engine.pulse.runOnce()
  for (let i = 0; i < 1_000; i++) if ((await engine.replanning.zones.runOnce()).waitMs === 1_000) return
  throw new Error('the way through the timers did not come to its end')
}

test('a node with newer zone data plans anew what older data planned otherwise, and lists it', async () => {
  const t = await setup()
  await t.storedAs('2026a')
  const later = await t.create(BERLIN)
  const sooner = await t.create({ ...BERLIN, cron: '0 12 * * *' })
  const right = await t.create({ ...BERLIN, cron: '0 15 * * *' })
  const inUtc = await t.create({ ...BERLIN, timezone: 'UTC' })
  const oneOff = await t.create({ queue: 'q', runAt: at(1, 9) })
  await t.plannedAs(later, at(1, 9))
  await t.plannedAs(sooner, at(1, 10))
  await t.plannedAs(inUtc, at(1, 10))

  await keepZones(t.node)
  expect(await t.nextOf(later), 'who had the shards may still be at work').toEqual(at(1, 9))
  t.clock.advance(SETTLE_MS)
  await keepZones(t.node)
  expect(await t.timerOf(later)).toEqual({ nominalAt: at(1, 8), dueAt: at(1, 8) })
  expect(await t.timerOf(sooner)).toEqual({ nominalAt: at(1, 11), dueAt: at(1, 11) })
  expect([await t.nextOf(right), await t.nextOf(inUtc), await t.nextOf(oneOff)]).toEqual([
    at(1, 14),
    at(1, 10),
    at(1, 9),
  ])
  expect((await t.changesOf(later)).slice(1)).toMatchObject([
    {
      action: 'zone_data',
      actor: 'tzdata 2026b',
      before: { nextRunAt: '2026-01-01T09:00:00.000Z' },
      after: { nextRunAt: '2026-01-01T08:00:00.000Z' },
    },
  ])
  expect(await t.changesOf(right)).toHaveLength(1)
  expect(t.lines).toMatchObject([
    { message: expect.stringContaining('zones have other rules'), fields: { zoneData: '2026b', moved: 2 } },
  ])
  expect(await t.stored()).toMatchObject({ zone_data: '2026b', 'zone_data:0': '2026b', 'zone_data:3': '2026b' })
})

test('what is due already stays due, and a time that has gone by unseen is caught up on', async () => {
  const t = await setup()
  await t.storedAs('2026a')
  const due = await t.create(BERLIN)
  const missed = await t.create({ ...BERLIN, cron: '30 9 * * *' })
  // Both have been decided up to the day before.
  await t.query(`update timers set decided_until = nominal_at - interval '1 day'`)
  await t.plannedAs(missed, at(1, 9, 30))
  t.clock.advance(8 * HOUR + 40 * 60_000)
  await t.engine.pulse.runOnce()
  t.clock.advance(SETTLE_MS)
  await keepZones(t.node)
  expect(await t.nextOf(due)).toEqual(at(1, 8))
  expect(await t.nextOf(missed)).toEqual(at(1, 8, 30))
  await t.engine.reader.runOnce()
  await t.engine.promoter.runOnce()
  expect([await t.runsOf(due), await t.runsOf(missed)]).toEqual([[at(1, 8)], [at(1, 8, 30)]])
  expect([await t.nextOf(due), await t.nextOf(missed)]).toEqual([at(2, 8), at(2, 8, 30)])
})

test('each node does its own shards, and the last one raises the edition', async () => {
  const t = await setup()
  await t.storedAs('2026a')
  const ids = await Promise.all(Array.from({ length: 20 }, () => t.create(BERLIN)))
  for (const jobId of ids) await t.plannedAs(jobId, at(1, 9))
  const other = await t.startNode()
  for (let second = 0; second <= SETTLE_MS; second += 1_000) {
    for (const { engine, clock } of [other, t.node]) {
      await engine.pulse.runOnce()
      clock.advance(1_000)
    }
  }
  const wrong = async () =>
    (await Promise.all(ids.map(t.nextOf))).filter((next) => next?.getTime() !== at(1, 8).getTime())
  await keepZones(t.node)
  expect((await wrong()).length).toBeGreaterThan(0)
  expect((await t.stored()).zone_data).toBe('2026a')
  await keepZones(other)
  expect(await wrong()).toEqual([])
  expect((await t.stored()).zone_data).toBe('2026b')
})

test('a node with older zone data lowers nothing, moves nothing, and says that it is old', async () => {
  const t = await setup('2026b')
  await t.storedAs('2026c')
  const jobId = await t.create(BERLIN)
  await t.plannedAs(jobId, at(1, 7))
  await t.engine.pulse.runOnce()
  t.clock.advance(SETTLE_MS)
  await keepZones(t.node)
  expect(await t.nextOf(jobId)).toEqual(at(1, 7))
  expect((await t.stored()).zone_data).toBe('2026c')
  expect(t.engine.replanning.zones.weakness()).toContain(
    'this node has the zone data of 2026b, and others plan by 2026c',
  )
  expect(t.lines).toMatchObject([
    { message: expect.stringContaining('older than the others'), fields: { zoneData: '2026b', newest: '2026c' } },
  ])

  // What it planned meanwhile is looked at again by those that know better.
  await t.engine.pulse.leave()
  const newer = await t.startNode({ zoneData: '2026c', start: t.clock.now() })
  await newer.engine.pulse.runOnce()
  newer.clock.advance(SETTLE_MS)
  await keepZones(newer)
  expect(newer.engine.replanning.zones.weakness()).toBeNull()
  expect(await t.nextOf(jobId)).toEqual(at(1, 8))
})

test('a node that finds its own edition stored reads no timers', async () => {
  const t = await setup()
  await t.storedAs('2026b')
  const jobId = await t.create(BERLIN)
  await t.plannedAs(jobId, at(1, 7))
  t.clock.advance(SETTLE_MS)
  await keepZones(t.node)
  expect(await t.nextOf(jobId)).toEqual(at(1, 7))
})

test('a paused job gets its new time and stays paused', async () => {
  const t = await setup()
  await t.storedAs('2026a')
  const jobId = await t.create(BERLIN)
  await t.plannedAs(jobId, at(1, 9))
  await t.engine.jobChanges.pause(jobId, null, 'bk_a')
  t.clock.advance(SETTLE_MS)
  await keepZones(t.node)
  expect(await t.timerOf(jobId)).toEqual({ nominalAt: at(1, 8), dueAt: Number.POSITIVE_INFINITY })
})
