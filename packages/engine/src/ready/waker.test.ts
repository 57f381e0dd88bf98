import { expect, test } from 'vitest'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { Waker } from './waker.ts'
import { NOTHING, type Woken } from './woken.ts'

/** More than it looks at in one statement. */
const MANY = 600

function setup() {
  const looked: string[] = []
  const clock = new ManualClock(0)
  const table = {
    anyWaits: async () => false,
    wake: async (_names: readonly string[]): Promise<Woken<string>> => NOTHING,
  }
  const waker = new Waker({ clock, logger: silentLogger, onNews: () => {}, onReady: () => {}, onWaiting: () => {} })
  const idOf = (name: string) => name
  const list = waker.list({
    name: 'some',
    idOf,
    anyWaits: () => table.anyWaits(),
    wake: (names) => {
      looked.push(...names)
      return table.wake(names)
    },
  })
  const look = (count: number) => {
    for (let name = 0; name < count; name++) list.look(String(name))
  }
  const settle = async () => {
    while ((await waker.runOnce()).waitMs === 0);
  }
  /** Another kind of name. */
  const others: string[] = []
  const other = waker.list({
    name: 'others',
    idOf,
    wake: async (names) => {
      others.push(...names)
      return NOTHING
    },
  })
  return { waker, clock, table, list, look, looked, other, others, settle }
}

test('of names that were told by the hundred none is looked at if no run waits', async () => {
  const t = setup()
  t.look(MANY)
  await t.settle()
  expect(t.looked).toEqual([])
})

test('a name that is told while the table is asked is looked at', async () => {
  const t = setup()
  t.look(MANY)
  t.table.anyWaits = async () => {
    t.list.look('7')
    return false
  }
  await t.settle()
  expect(t.looked).toEqual(['7'])
})

test('if any run waits all names are looked at, and if the table does not answer they are kept', async () => {
  const t = setup()
  t.look(MANY)
  t.table.anyWaits = () => Promise.reject(new Error('away'))
  await t.waker.runOnce()
  expect(t.looked).toEqual([])
  t.table.anyWaits = async () => true
  t.clock.advance(1_000)
  await t.settle()
  expect(new Set(t.looked).size).toBe(MANY)
})

test('a few names are looked at without asking', async () => {
  const t = setup()
  t.look(3)
  await t.settle()
  expect(t.looked).toHaveLength(3)
})

test('a name that another transaction holds is looked at again soon, and after some tries left to the sweep', async () => {
  const t = setup()
  t.table.wake = async (held) => ({ ...NOTHING, held })
  t.list.look('held')
  await t.settle()
  expect(t.looked).toEqual(['held'])
  await t.settle()
  expect(t.looked).toEqual(['held'])
  for (let ms = 0; ms < 1_000; ms += 20) {
    t.clock.advance(20)
    await t.settle()
  }
  expect(t.looked).toHaveLength(25)
  t.list.look('held')
  await t.settle()
  expect(t.looked).toHaveLength(26)
})

test('a name is looked at when it was told to be, and when its statement says', async () => {
  const t = setup()
  t.table.wake = async () => ({ ...NOTHING, again: [{ name: 'later', at: 900 }] })
  t.list.look('later', 400)
  expect(await t.waker.runOnce()).toMatchObject({ waitMs: 400 })
  expect(t.looked).toEqual([])
  t.clock.advance(400)
  expect(await t.waker.runOnce()).toMatchObject({ waitMs: 500 })
  expect(t.looked).toEqual(['later'])
  t.clock.advance(500)
  await t.waker.runOnce()
  expect(t.looked).toEqual(['later', 'later'])
})

test('what is told while a name is being looked at is looked at after that', async () => {
  const t = setup()
  t.table.wake = async () => {
    if (t.looked.length === 1) t.list.look('twice')
    return NOTHING
  }
  t.list.look('twice')
  await t.settle()
  expect(t.looked).toEqual(['twice', 'twice'])
})

test('a kind that cannot be looked at keeps its names, and the others are looked at meanwhile', async () => {
  const t = setup()
  t.table.wake = () => Promise.reject(new Error('away'))
  t.list.look('kept')
  t.other.look('woken')
  await t.settle()
  expect([t.looked, t.others]).toEqual([['kept'], ['woken']])
  t.table.wake = async () => NOTHING
  t.clock.advance(1_000)
  await t.settle()
  expect(t.looked).toEqual(['kept', 'kept'])
})
