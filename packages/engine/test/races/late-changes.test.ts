import { describe, expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { type Node, START, setup } from './setup.ts'

const DUE_AT = START + 5_000
/** Inside the seconds that a node reads ahead: the timer is in its memory when the job is changed. */
const CHANGED_AT = START + 3_500

const ONE_OFF: JobInput = { queue: 'reports', payload: 1, runAt: new Date(DUE_AT) }
const RECURRING: JobInput = { queue: 'reports', payload: 1, every: 'PT10M', startAt: new Date(DUE_AT) }

interface Way {
  job: JobInput
  change(node: Node, jobId: string): Promise<unknown>
  /** How many runs begin, in all. */
  runs: number
}

const at = (ms: number): Date => new Date(START + ms)

const WAYS: Record<string, Way> = {
  'labels of a one-off': {
    job: ONE_OFF,
    change: (node, jobId) => node.jobs.update(jobId, { labels: { a: 'b' } }),
    runs: 1,
  },
  'labels of a one-off that may run once': {
    job: { ...ONE_OFF, delivery: 'at_most_once' },
    change: (node, jobId) => node.jobs.update(jobId, { labels: { a: 'b' } }),
    runs: 1,
  },
  'labels of a recurring job': {
    job: RECURRING,
    change: (node, jobId) => node.jobs.update(jobId, { labels: { a: 'b' } }),
    runs: 1,
  },
  'a definition that a deploy puts again': {
    job: RECURRING,
    change: (node, jobId) => node.jobs.update(jobId, { ...RECURRING, payload: 2 }),
    runs: 1,
  },
  'a time that is moved a little later': {
    job: ONE_OFF,
    change: (node, jobId) => node.jobs.update(jobId, { runAt: at(5_300) }),
    runs: 1,
  },
  'a time that is moved a little earlier': {
    job: ONE_OFF,
    change: (node, jobId) => node.jobs.update(jobId, { runAt: at(4_700) }),
    runs: 1,
  },
  'a time that is moved far away': {
    job: ONE_OFF,
    change: (node, jobId) => node.jobs.update(jobId, { runAt: at(60_000) }),
    runs: 0,
  },
  'a pause that ends at once': {
    job: RECURRING,
    change: async (node, jobId) => {
      await node.jobs.pause(jobId)
      await node.jobs.resume(jobId)
    },
    runs: 1,
  },
  'a trigger': {
    job: { ...RECURRING, overlap: 'allow' },
    change: (node, jobId) => node.jobs.trigger(jobId),
    runs: 2,
  },
  'ten changes': {
    job: ONE_OFF,
    change: async (node, jobId) => {
      for (let i = 0; i < 10; i++) {
        await node.jobs.update(jobId, { runAt: at(4_600 + 100 * i) })
        await lookAgain(node)
      }
    },
    runs: 1,
  },
}

/** As if the node had been told that something was written. */
async function lookAgain(node: Node): Promise<void> {
  for (const shard of node.engine.reader.ownedShards) node.engine.reader.want(shard, CHANGED_AT)
  await node.readTimers()
}

describe.each(Object.entries(WAYS))('a change shortly before the due time: %s', (_, { job, change, runs }) => {
  test.each([1, 2])('begins every attempt once, with %i node(s)', async (count) => {
    const t = await setup()
    const nodes: Node[] = []
    const begun: string[] = []
    for (let i = 0; i < count; i++) {
      const node = await t.startNode()
      await node.handle('reports', (run) => begun.push(`${run.id} ${run.attempt}`))
      nodes.push(node)
    }
    const [first, last] = [nodes[0] as Node, nodes.at(-1) as Node]
    const { jobId } = await first.jobs.create(job)
    for (const node of nodes) {
      node.clock.advance(CHANGED_AT - START)
      await lookAgain(node)
    }
    await change(last, jobId)
    for (let ms = CHANGED_AT; ms < DUE_AT + 1_000; ms += 100) {
      for (const node of nodes) {
        node.clock.advance(100)
        await lookAgain(node)
        await node.promote()
        await node.claim('reports')
        await node.engine.handlers.settled()
      }
    }
    expect(begun).toHaveLength(runs)
    expect(new Set(begun).size).toBe(runs)
  })
})

test('a unique job that is replaced again and again shortly before its time runs once', async () => {
  const t = await setup()
  const node = await t.startNode()
  const begun: string[] = []
  await node.handle('reports', (run) => begun.push(`${run.id} ${run.attempt} ${run.payload}`))
  node.clock.advance(CHANGED_AT - START)
  for (let i = 1; i <= 5; i++) {
    await node.jobs.create({ queue: 'reports', payload: i, delay: '1s', unique: { key: 'k', onConflict: 'replace' } })
    await lookAgain(node)
    node.clock.advance(100)
    await node.promote()
  }
  for (let ms = 0; ms < 2_000; ms += 100) {
    node.clock.advance(100)
    await lookAgain(node)
    await node.promote()
    await node.claim('reports')
    await node.engine.handlers.settled()
  }
  expect(begun).toEqual([expect.stringMatching(/ 1 5$/)])
})
