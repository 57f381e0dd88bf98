import { expect, test } from 'vitest'
import { durationText, timeText } from './time-text.ts'

test('an instant is shown in the zone of the machine, with its offset', () => {
  const text = timeText('2026-07-27T12:03:05.123Z')
  expect(text).toMatch(/^2026-07-2[678] \d\d:\d\d:05(Z|[+-]\d\d:\d\d)$/)
  expect(new Date(text.replace(' ', 'T')).toISOString()).toBe('2026-07-27T12:03:05.000Z')
})

test('what is not there is empty, and what is no instant is shown as it is', () => {
  expect(timeText(null)).toBe('')
  expect(timeText('soon')).toBe('soon')
})

test.each([
  [12, '12 ms'],
  [1_500, '1.5 s'],
  [61_000, '1 m 1 s'],
  [7_260_000, '2 h 1 m'],
])('%i ms are %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})
