import { expect, test } from 'vitest'
import { ManualClock } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { LimitSweep } from './limit-sweep.sql.ts'

const PIECES = 100
const PIECE_MS = 20

/** A sweep over so many keys that a round takes a hundred looks of 20 ms each. */
function setup() {
  const clock = new ManualClock(0)
  let looks = 0
  const db: Queryable = {
    query: async <Row extends readonly unknown[]>() => {
      clock.advance(PIECE_MS)
      return (++looks % PIECES === 0 ? [] : [[0, String(looks), true, false]]) as unknown as Row[]
    },
    execute: async () => 0,
  }
  const sweep = new LimitSweep({ db, clock, look: () => {} })
  sweep.saw(true)
  /** How long it takes until all keys have been looked at once more. */
  const round = async () => {
    const [from, begun] = [clock.now(), looks]
    while (looks < begun + PIECES) clock.advance((await sweep.runOnce()).waitMs)
    return clock.now() - from
  }
  return { sweep, round }
}

test('when shards change hands all that waits is looked at without pauses, and then at leisure again', async () => {
  const { sweep, round } = setup()
  sweep.own([0])
  expect(await round()).toBeLessThan(2 * PIECES * PIECE_MS)
  expect(await round()).toBeGreaterThan(15 * PIECES * PIECE_MS)
  sweep.own([0])
  expect(await round()).toBeGreaterThan(15 * PIECES * PIECE_MS)
})
