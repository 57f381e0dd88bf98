import { expect, test } from 'vitest'
import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import { dayOf } from '../../src/history/partition.ts'
import { attach, createLike, detach } from '../../src/history/partition-ddl.sql.ts'
import { type Node, START, setup } from './setup.ts'

const DAY = 86_400_000

/** Performs one run at once and answers when its end is written. */
async function performOne(node: Node): Promise<void> {
  await node.jobs.create({ queue: 'work', payload: 1 })
  await node.claim('work')
  await node.engine.handlers.settled()
}

async function setupHandled() {
  const t = await setup()
  const node = await t.startNode()
  const performed: ActiveRun[] = []
  await node.handle('work', (run) => void performed.push(run))
  const ended = async () => (await t.query('select from attempts')).length
  return { ...t, node, performed, ended }
}

test('a finish does not wait for a partition that is being attached', async () => {
  const t = await setupHandled()
  const maker = await t.connect()
  const partition = { table: 'attempts', day: dayOf(START) + 40 * DAY } as const
  await maker.query('begin')
  await maker.query(createLike(t.schema, partition))
  await maker.query(attach(t.schema, partition))
  await performOne(t.node)
  expect(await t.ended()).toBe(1)
  await maker.query('commit')
  await performOne(t.node)
  expect(await t.ended()).toBe(2)
})

test('a day that cannot be dropped behind an open reader is left, and finishes go on meanwhile', async () => {
  const t = await setupHandled()
  await performOne(t.node)
  const reader = await t.connect()
  await reader.query('begin')
  await reader.query('select count(*) from attempts')
  const dropping = t.node.engine.partitioner.drop('attempts', dayOf(START) + 2 * DAY)
  await performOne(t.node)
  expect(await dropping).toBe('busy')
  expect(await t.ended()).toBe(2)
  await reader.query('commit')
  expect(await t.node.engine.partitioner.drop('attempts', dayOf(START) + 2 * DAY)).toBe('dropped')
  await performOne(t.node)
  expect(await t.ended()).toBe(3)
})

test('a finish that finds no partition for its day makes it', async () => {
  const t = await setupHandled()
  await t.query(detach(t.schema, { table: 'attempts', day: dayOf(START) }))
  await t.query(`drop table attempts_20260101`)
  await performOne(t.node)
  expect(await t.ended()).toBe(1)
})
