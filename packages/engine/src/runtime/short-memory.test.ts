import { expect, test } from 'vitest'
import { ManualClock } from './clock.ts'
import { ShortMemory } from './short-memory.ts'

function setup(maxEntries = 10) {
  const clock = new ManualClock()
  const memory = new ShortMemory<number>({ clock, keepMs: 1_000, maxEntries })
  const asked: string[] = []
  /** Answers how many questions there have been. */
  const get = (key: string) => memory.get(key, async () => asked.push(key))
  return { clock, memory, asked, get }
}

test('an answer is used for its time and then asked for again', async () => {
  const { clock, get } = setup()
  expect(await get('a')).toBe(1)
  clock.advance(999)
  expect(await get('a')).toBe(1)
  clock.advance(1)
  expect(await get('a')).toBe(2)
})

test('callers at the same time share one question', async () => {
  const { get, asked } = setup()
  expect(await Promise.all([get('a'), get('a'), get('b')])).toEqual([1, 1, 2])
  expect(asked).toEqual(['a', 'b'])
})

test('a failed question is not remembered', async () => {
  const { memory, get } = setup()
  await expect(memory.get('a', () => Promise.reject(new Error('down')))).rejects.toThrow('down')
  expect(await get('a')).toBe(1)
})

test('what is forgotten while it is asked for is asked for again', async () => {
  const { memory, get } = setup()
  let answer = (_: number): void => {}
  const asking = memory.get('a', () => new Promise((resolve) => (answer = resolve)))
  memory.forget('a')
  const again = get('a')
  answer(77)
  expect([await asking, await again, await get('a')]).toEqual([77, 1, 1])
})

test('beyond its size the oldest answers go', async () => {
  const { get, asked } = setup(2)
  for (const key of ['a', 'b', 'c', 'b', 'c', 'a']) await get(key)
  expect(asked).toEqual(['a', 'b', 'c', 'a'])
})
