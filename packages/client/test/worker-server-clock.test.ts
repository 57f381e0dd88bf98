import { expect, test } from 'vitest'
import { ServerClock } from '../src/worker/server-clock.ts'
import { ManualRuntime } from './worker-runtime.ts'

test('a worker whose clock is wrong goes by the server, late by a delay at most and never early', () => {
  const runtime = new ManualRuntime({ wallMs: 5_000_000 })
  const clock = new ServerClock(runtime)
  expect(clock.now()).toBe(5_000_000)
  const serverNow = () => 1_000_000 + runtime.monotonicMs()
  for (const delayMs of [40, 3, 900]) {
    const said = serverNow()
    runtime.advance(delayMs)
    clock.observe(said)
    expect(clock.now()).toBeLessThanOrEqual(serverNow())
  }
  runtime.advance(1_000)
  expect(serverNow() - clock.now()).toBe(3)
})

test('a server whose clock was put back is followed after a while', () => {
  const runtime = new ManualRuntime({ wallMs: 0 })
  const clock = new ServerClock(runtime)
  const putBack = (ms: number) => clock.observe(runtime.monotonicMs() + ms)
  putBack(10_000_000)
  for (let minutes = 0; minutes < 2; minutes++) {
    runtime.advance(61_000)
    putBack(500)
  }
  expect(clock.now() - runtime.monotonicMs()).toBe(500)
})
