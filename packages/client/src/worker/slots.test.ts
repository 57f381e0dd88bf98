import { expect, test } from 'vitest'
import { ServerClock } from './server-clock.ts'
import { Slots } from './slots.ts'
import { systemWorkerRuntime } from './worker-runtime.ts'

function setup(): Slots {
  const deps = {
    runtime: systemWorkerRuntime,
    serverClock: new ServerClock(systemWorkerRuntime),
    begin: async () => {},
    onEnd: () => {},
    onRoom: () => {},
  }
  return new Slots({ perform: () => {}, concurrency: 2, size: 1, waitMs: 0, prefetch: 5 }, deps)
}

test('free slots are asked for while an open call leases ahead and work that is done at most once waits', () => {
  const slots = setup()
  slots.reserve({ max: 5, prefetch: 5 })
  slots.isHoldingBack = true
  expect(slots.freeSlots()).toBe(2)
  expect(slots.wantsMore()).toBe(true)
  expect(slots.credit()).toBe(2)
})

test('slots that an open call asks for are not asked for again', () => {
  const slots = setup()
  slots.reserve({ max: 7, prefetch: 5 })
  expect(slots.credit()).toBe(0)
  expect(slots.wantsMore()).toBe(false)
})
