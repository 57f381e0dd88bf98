import { expect, test } from 'vitest'
import { ManualClock } from '../runtime/clock.ts'
import { Sweep } from './sweep.ts'

const PIECES = 100
const PIECE_MS = 20

/** A sweep over so many names of a kind that a round takes a hundred looks of 20 ms each. */
function setup() {
  const clock = new ManualClock(0)
  const looks = { blocked: 0, limited: 0 }
  const kindOf = (kind: keyof typeof looks) => ({
    look: async () => {
      clock.advance(PIECE_MS)
      return new Map(++looks[kind] % PIECES === 0 ? [] : [[0, String(looks[kind])]])
    },
  })
  const sweep = new Sweep({ clock, blocked: kindOf('blocked'), limited: kindOf('limited') })
  /** How long it takes until all names of the kind have been looked at once more. */
  const round = async (kind: keyof typeof looks) => {
    const [from, begun] = [clock.now(), looks[kind]]
    while (looks[kind] < begun + PIECES) clock.advance((await sweep.runOnce()).waitMs)
    return clock.now() - from
  }
  return { sweep, round, looks }
}

test.each(['blocked', 'limited'] as const)(
  'when shards change hands all that waits is looked at without pauses, and then at leisure again: %s',
  async (kind) => {
    const { sweep, round } = setup()
    sweep.saw({ hasBlocked: kind === 'blocked', hasLimited: kind === 'limited' })
    sweep.own([0])
    expect(await round(kind)).toBeLessThan(2 * PIECES * PIECE_MS)
    expect(await round(kind)).toBeGreaterThan(15 * PIECES * PIECE_MS)
    sweep.own([0])
    expect(await round(kind)).toBeGreaterThan(15 * PIECES * PIECE_MS)
  },
)

test('only kinds of which any run waits are looked at', async () => {
  const { sweep, looks } = setup()
  sweep.own([0])
  expect(sweep.saw({ hasBlocked: false, hasLimited: false })).toBe(false)
  await sweep.runOnce()
  expect(looks).toEqual({ blocked: 0, limited: 0 })
  expect(sweep.saw({ hasBlocked: false, hasLimited: true })).toBe(true)
  await sweep.runOnce()
  expect(looks).toEqual({ blocked: 0, limited: 1 })
})

test('a kind that cannot be swept keeps the other from nothing', async () => {
  const clock = new ManualClock(0)
  let limited = 0
  const sweep = new Sweep({
    clock,
    blocked: { look: () => Promise.reject(new Error('no')) },
    limited: {
      look: async () => {
        limited++
        return new Map()
      },
    },
  })
  sweep.own([0])
  sweep.saw({ hasBlocked: true, hasLimited: true })
  for (let i = 0; i < 20; i++) {
    await sweep.runOnce().catch(() => {})
    clock.advance(1_000)
  }
  expect(limited).toBeGreaterThan(0)
})
