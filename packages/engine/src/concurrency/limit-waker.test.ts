import { expect, test } from 'vitest'
import { ManualClock } from '../runtime/clock.ts'
import { LimitWaker } from './limit-waker.ts'

/** More than it looks at in one statement. */
const MANY = 600

function setup() {
  const looked: string[] = []
  const table = { anyWaits: async () => false }
  const waker = new LimitWaker({
    clock: new ManualClock(0),
    anyWaits: () => table.anyWaits(),
    wake: async (keys) => {
      looked.push(...keys.map(({ key }) => key))
      return { ready: [], rated: [] }
    },
    space: async () => ({ waiting: [], again: [], held: [] }),
    onNews: () => {},
    onReady: () => {},
    onWaiting: () => {},
  })
  const free = (count: number) => {
    for (let key = 0; key < count; key++) waker.freed(0, String(key))
  }
  const settle = async () => {
    while ((await waker.runOnce()).waitMs === 0);
  }
  return { waker, table, looked, free, settle }
}

test('of keys that were freed by the hundred none is looked at if nobody waits', async () => {
  const t = setup()
  t.free(MANY)
  await t.settle()
  expect(t.looked).toEqual([])
})

test('a slot that is freed while the table is asked is looked at', async () => {
  const t = setup()
  t.free(MANY)
  t.table.anyWaits = async () => {
    t.waker.freed(0, '7')
    return false
  }
  await t.settle()
  expect(t.looked).toEqual(['7'])
})

test('if anybody waits all keys are looked at, and if the table does not answer they are kept', async () => {
  const t = setup()
  t.free(MANY)
  t.table.anyWaits = () => Promise.reject(new Error('away'))
  await expect(t.settle()).rejects.toThrow('away')
  expect(t.looked).toEqual([])
  t.table.anyWaits = async () => true
  await t.settle()
  expect(new Set(t.looked).size).toBe(MANY)
})

test('a few keys are looked at without asking', async () => {
  const t = setup()
  t.free(3)
  await t.settle()
  expect(t.looked).toHaveLength(3)
})
