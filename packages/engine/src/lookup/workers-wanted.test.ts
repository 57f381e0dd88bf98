import { expect, test } from 'vitest'
import { type Load, workersWanted } from './workers-wanted.ts'

const QUIET: Load = {
  backlog: 0,
  running: 0,
  serviceMs: 1_000,
  arrivalsPerSecond: 0,
  targetLagMs: 10_000,
  perWorker: 10,
}
const wanted = (load: Partial<Load>) => workersWanted({ ...QUIET, ...load })

test('a queue in which nothing happens wants no worker', () => {
  expect(wanted({})).toEqual({ workers: 0, slots: 0 })
  expect(wanted({ serviceMs: null })).toEqual({ workers: 0, slots: 0 })
})

test('one waiting run wants one worker, however short or long it takes', () => {
  for (const serviceMs of [0, 1, 1_000, 3_600_000, null])
    for (const arrivalsPerSecond of [0, 1 / 60]) {
      const one = wanted({ backlog: 1, serviceMs, arrivalsPerSecond, perWorker: 1 })
      expect(one, `service ${serviceMs}`).toEqual({ workers: 1, slots: 1 })
    }
})

test('arrivals want the slots that they keep busy', () => {
  expect(wanted({ arrivalsPerSecond: 50, serviceMs: 2_000, running: 97 })).toEqual({ workers: 10, slots: 100 })
  expect(wanted({ arrivalsPerSecond: 50, serviceMs: 20, running: 1 })).toEqual({ workers: 1, slots: 1 })
})

test('a backlog wants as many slots as work it off within the target lag', () => {
  expect(wanted({ backlog: 1_000 })).toEqual({ workers: 10, slots: 100 })
  expect(wanted({ backlog: 1_000, targetLagMs: 1_000 })).toEqual({ workers: 100, slots: 1_000 })
  expect(wanted({ backlog: 1_000, arrivalsPerSecond: 100, running: 50 })).toEqual({ workers: 20, slots: 200 })
})

test('a queue of which nothing has ended yet is taken to need a second for each run', () => {
  expect(wanted({ backlog: 1_000, serviceMs: null })).toEqual(wanted({ backlog: 1_000, serviceMs: 1_000 }))
})

test('what is being performed keeps its slots when nothing else comes', () => {
  expect(wanted({ running: 5, serviceMs: 3_600_000 })).toEqual({ workers: 1, slots: 5 })
})

test('there are never more slots than runs that could use them', () => {
  expect(wanted({ backlog: 3, serviceMs: 3_600_000 }).slots).toBe(3)
  expect(wanted({ backlog: 1, running: 5, serviceMs: 3_600_000, arrivalsPerSecond: 1 / 60 }).slots).toBe(6)
  for (const backlog of [0, 1, 7, 100])
    for (const running of [0, 1, 40])
      for (const serviceMs of [1, 500, 60_000]) {
        const { slots } = wanted({ backlog, running, serviceMs, arrivalsPerSecond: 0.01 })
        expect(slots).toBeLessThanOrEqual(backlog + running)
        expect(slots).toBeGreaterThanOrEqual(Math.min(1, backlog + running))
      }
})

test('workers come in whole numbers, and one that performs more at a time is worth more', () => {
  expect(wanted({ backlog: 1_000, perWorker: 1 }).workers).toBe(100)
  expect(wanted({ backlog: 1_000, perWorker: 33 }).workers).toBe(4)
  expect(wanted({ backlog: 1_000, perWorker: 1_000 }).workers).toBe(1)
})
