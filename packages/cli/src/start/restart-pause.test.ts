import { expect, test } from 'vitest'
import { RestartPause } from './restart-pause.ts'

test('a process that keeps dying is started again after longer and longer pauses, never more than ten seconds', () => {
  const pause = new RestartPause()
  expect(Array.from({ length: 8 }, () => pause.next(100))).toEqual([250, 500, 1000, 2000, 4000, 8000, 10000, 10000])
})

test('one that had lived for a while is started again soon', () => {
  const pause = new RestartPause()
  for (let i = 0; i < 8; i++) pause.next(100)
  expect(pause.next(60_000)).toBe(250)
  expect(pause.next(100)).toBe(500)
})
