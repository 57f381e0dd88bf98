import { expect, test } from 'vitest'
import { ManualClock } from '../../runtime/clock.ts'
import { WaitEnds } from './wait-ends.ts'

const START = Date.UTC(2026, 0, 1, 0, 0, 0, 123)

function setup() {
  const clock = new ManualClock(START)
  const waits = new WaitEnds(clock)
  const ended: { name: string; afterMs: number }[] = []
  const wait = (name: string, waitMs: number) =>
    waits.after(waitMs, () => ended.push({ name, afterMs: clock.now() - START }))
  return { clock, ended, wait }
}

test('long waits end together, up to half a second before their time and never after it', () => {
  const t = setup()
  const waits = Array.from({ length: 50 }, (_, i) => 27_000 + i * 61)
  for (const waitMs of waits) t.wait(String(waitMs), waitMs)
  t.clock.advance(31_000)
  for (const { name, afterMs } of t.ended) {
    expect(afterMs).toBeLessThanOrEqual(Number(name))
    expect(afterMs).toBeGreaterThan(Number(name) - 500)
  }
  expect(t.ended).toHaveLength(50)
  expect(new Set(t.ended.map(({ afterMs }) => afterMs)).size).toBeLessThanOrEqual(8)
})

test('a wait of less than ten seconds ends when it is over', () => {
  const t = setup()
  t.wait('short', 9_999)
  t.wait('shortest', 1)
  t.clock.advance(10_000)
  expect(t.ended).toEqual([
    { name: 'shortest', afterMs: 1 },
    { name: 'short', afterMs: 9_999 },
  ])
})

test('a wait that is broken off does not end, and those that would have ended with it do', () => {
  const t = setup()
  const first = t.wait('first', 20_000)
  t.wait('second', 20_001)
  const third = t.wait('third', 25_000)
  first.cancel()
  third.cancel()
  third.cancel()
  t.wait('fourth', 25_000)
  third.cancel()
  t.clock.advance(30_000)
  expect(t.ended.map(({ name }) => name)).toEqual(['second', 'fourth'])
})
