import { expect, test } from 'vitest'
import { FRESH_MS } from './decide.ts'
import { MAX_HOLD_MS } from './direct-leases.ts'

test('a due time is never held until catch-up would take it for missed', () => {
  // Half a minute is left for the statement that promotes it, however busy the node is.
  expect(MAX_HOLD_MS).toBeLessThanOrEqual(FRESH_MS / 2)
})
