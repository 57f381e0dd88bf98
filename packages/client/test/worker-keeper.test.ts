import { expect, test, vi } from 'vitest'
import type { Heartbeats } from '../src/worker/heartbeats.ts'
import { Keeper } from '../src/worker/keeper.ts'
import { LeaseBoard } from '../src/worker/lease-board.ts'
import { RemoteRun } from '../src/worker/remote-run.ts'
import { ServerClock } from '../src/worker/server-clock.ts'
import { ManualRuntime } from './worker-runtime.ts'

const START = Date.UTC(2026, 0, 1)
const LEASE_MS = 30_000

function setup() {
  const runtime = new ManualRuntime({ wallMs: START })
  const serverClock = new ServerClock(runtime)
  serverClock.observe(START)
  const board = new LeaseBoard(10)
  const beat = vi.spyOn(board, 'beat')
  const renewed: string[] = []
  const heartbeats = { renew: (run: RemoteRun) => renewed.push(run.token) } as unknown as Heartbeats
  const givenUp: string[] = []
  const timedOut = (run: RemoteRun) => givenUp.push(run.token)
  const keeper = new Keeper({
    runtime,
    serverClock,
    heartbeats,
    board,
    leaseMs: LEASE_MS,
    timedOut,
    giveBack: () => {},
  })
  const home = { unsent: 0, giveUp: () => {}, fill: () => {}, takeOverdue: () => [] }
  const services = { now: () => 0, beat: async () => {}, noted: () => {} }
  const hold = (token: string, timeoutMs = 300_000) => {
    const at = serverClock.now()
    const [leaseUntil, deadline] = [at + LEASE_MS, at + timeoutMs].map((ms) => new Date(ms).toISOString())
    const leased = {
      ...{ token, runId: token, jobId: token, nominalAt: '', attempt: 1, failures: 0 },
      leaseUntil,
      deadline,
    }
    const run = new RemoteRun(leased as RemoteRun['leased'], home, services, runtime.monotonicMs())
    run.state = 'active'
    keeper.hold(run)
    return run
  }
  return { runtime, keeper, board, beat, renewed, givenUp, hold }
}

test('leases are renewed at a third of their length, and all that are not quite fresh with them', () => {
  const t = setup()
  t.hold('a')
  t.runtime.advance(3_000)
  t.hold('b')
  t.runtime.advance(6_000)
  t.hold('c')
  t.keeper.runOnce()
  expect(t.renewed).toEqual([])
  t.runtime.advance(1_000)
  t.keeper.runOnce()
  expect(t.renewed).toEqual(['a', 'b'])
})

test('the thread stands in as soon as a heartbeat is late, and not before', () => {
  const t = setup()
  t.hold('a')
  t.runtime.advance(11_000)
  t.keeper.runOnce()
  expect(t.beat).toHaveBeenCalledTimes(1)
  t.runtime.advance(1_000)
  t.keeper.runOnce()
  expect(t.beat).toHaveBeenCalledTimes(1)
})

test('a machine that was asleep asks at once what became of its leases', () => {
  const t = setup()
  t.hold('a')
  t.runtime.advance(200)
  t.keeper.runOnce()
  t.runtime.sleepThrough(60_000)
  t.runtime.advance(200)
  t.keeper.runOnce()
  expect(t.renewed).toEqual(['a'])
})

test('a handler is told at its deadline, and gives its slot back when it ignores that for five seconds', () => {
  const t = setup()
  const run = t.hold('a', 10_000)
  t.runtime.advance(9_999)
  t.keeper.runOnce()
  expect(run.aborted).toBe(null)
  t.runtime.advance(1)
  t.keeper.runOnce()
  expect(run.signal.reason).toBe('timeout')
  expect(t.givenUp).toEqual([])
  t.runtime.advance(5_000)
  t.keeper.runOnce()
  expect(t.givenUp).toEqual(['a'])
})
