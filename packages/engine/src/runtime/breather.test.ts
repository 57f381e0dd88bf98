import { expect, test } from 'vitest'
import { Breather } from './breather.ts'

test('long work lets others have their turn, and is told when it has had enough', async () => {
  let now = 0
  const breather = new Breather({ now: () => now })
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  for (let step = 0; step < 60; step++) {
    expect(breather.isSpent).toBe(now >= 1_000)
    now += 20
    await breather.breathe()
  }
  isOver = true
  expect(turns).toBeGreaterThanOrEqual(59)
})

test('work that takes no time is not put off at every step, but now and then', async () => {
  const breather = new Breather({ now: () => 0 })
  let turns = 0
  setImmediate(() => turns++)
  for (let step = 0; step < 99; step++) await breather.breathe()
  expect(turns).toBe(0)
  await breather.breathe()
  expect(turns).toBe(1)
})
