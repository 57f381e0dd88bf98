import { expect, test } from 'vitest'
import { RestartPause } from './restart-pause.ts'

test('a process that keeps dying is started again after longer and longer pauses, never more than ten seconds', () => {
  const pause = new RestartPause()
  expect(Array.from({ length: 8 }, () => pause.next(0))).toEqual([250, 500, 1000, 2000, 4000, 8000, 10000, 10000])
})

test('one that had served for a while is started again soon, however often', () => {
  const pause = new RestartPause()
  for (let i = 0; i < 8; i++) pause.next(100)
  for (let i = 0; i < 20; i++) expect(pause.next(5_000)).toBe(250)
  expect(pause.next(100)).toBe(500)
})
