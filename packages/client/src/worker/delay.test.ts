import { expect, test } from 'vitest'
import { delayMsOf, delayText } from './delay.ts'

test.each([
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['500ms', 500],
  ['1.001s', 1_001],
  ['2d', 172_800_000],
  ['PT15M', 900_000],
  ['P1DT12H', 129_600_000],
  ['P1W', 604_800_000],
  ['PT0.25S', 250],
  ['PT0S', 0],
])('%s is a delay', (text, ms) => {
  expect(delayMsOf(text)).toBe(ms)
  expect(delayMsOf(delayText(ms))).toBe(ms)
})

test.each(['', 'P', 'PT', 'soon', '90', '-5s', 'P1M', '5 s', '99999999999d', 7, null])('%s is none', (text) => {
  expect(() => delayMsOf(text)).toThrow(/a delay must be text/)
})
