import { expect, test } from 'vitest'
import { ManualClock } from '../runtime/clock.ts'
import { type Asked, Gauge, type Reading, type Refusal } from './gauge.ts'

const REFUSAL: Refusal = {
  code: 'queue_full',
  neverFits: () => 'never fits',
  full: (_, waiting) => waiting,
  late: () => 'late',
}

/** A gauge of places that may hold ten, whose measures come when they are told to. */
function setup() {
  const clock = new ManualClock(0)
  const asked: { ids: number[]; answer(depth: number): void; fail(): void }[] = []
  const measure = (places: readonly Asked[]) =>
    new Promise<Reading[]>((resolve, reject) => {
      const ids = places.map(({ id }) => id)
      asked.push({
        ids,
        answer: (depth) => resolve(ids.map((id) => ({ id, depth, oldestDueAt: null }))),
        fail: () => reject(new Error('the database is away')),
      })
    })
  const limits = { isEmpty: false, of: () => ({ maxDepth: 10, maxAgeMs: null }) }
  return { clock, asked, gauge: new Gauge({ clock, limits, measure, refusal: REFUSAL }) }
}

test('a place is measured once for all who come meanwhile, and nobody waits for the places of others', async () => {
  const { gauge, asked } = setup()
  const slow = [gauge.refresh([1]), gauge.refresh([1])]
  const other = gauge.refresh([2])
  expect(asked.map(({ ids }) => ids)).toEqual([[1], [2]])
  asked[1]?.answer(3)
  await other
  expect(() => gauge.mustHaveRoom([{ id: 2, name: 'two', jobs: 8, due: 8 }])).toThrow('3 runs wait')
  asked[0]?.answer(10)
  await Promise.all(slow)
  expect(() => gauge.mustHaveRoom([{ id: 1, name: 'one', jobs: 1, due: 1 }])).toThrow('10 runs wait')
  await gauge.refresh([1, 2])
  expect(asked).toHaveLength(2)
})

test('a call to several places waits for the measures that others have begun, and measures the rest', async () => {
  const { gauge, asked } = setup()
  const first = gauge.refresh([1])
  let isDone = false
  const both = gauge.refresh([1, 2]).then(() => {
    isDone = true
  })
  expect(asked.map(({ ids }) => ids)).toEqual([[1], [2]])
  asked[1]?.answer(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(isDone).toBe(false)
  asked[0]?.answer(0)
  await Promise.all([first, both])
})

test('a measure that fails is told to whoever waits for it, and made again', async () => {
  const { gauge, asked } = setup()
  const waiting = [gauge.refresh([1]), gauge.refresh([1])]
  asked[0]?.fail()
  for (const one of waiting) await expect(one).rejects.toThrow('away')
  const again = gauge.refresh([1])
  asked[1]?.answer(0)
  await again
})

test('what was found before a measure that failed refuses nobody', async () => {
  const { gauge, asked, clock } = setup()
  const wanted = [{ id: 1, name: 'one', jobs: 1, due: 1 }]
  const first = gauge.refresh([1])
  asked[0]?.answer(10)
  await first
  expect(() => gauge.mustHaveRoom(wanted)).toThrow('10 runs wait')
  clock.advance(60_000)
  const second = gauge.refresh([1])
  asked[1]?.fail()
  await expect(second).rejects.toThrow('away')
  gauge.mustHaveRoom(wanted)
})
