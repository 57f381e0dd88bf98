import { expect, test } from 'vitest'
import { ManualClock } from './clock.ts'
import { type Piece, Rounds } from './rounds.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'

function setup(shards: number[], maxVisited = 100) {
  const clock = new ManualClock(0)
  const rounds = new Rounds(clock, { maxVisited })
  rounds.own(shards)
  const pieces: Piece[] = []
  /** One piece that takes so long and answers where to go on. */
  const next = (goOn: Record<number, string> = {}, tookMs = 0) =>
    rounds.next(async (piece) => {
      pieces.push(piece)
      clock.advance(tookMs)
      return new Map(Object.entries(goOn).map(([shard, position]) => [Number(shard), position]))
    })
  return { clock, rounds, pieces, next }
}

test('a piece visits a bounded number, shared by the shards that are left of the round', async () => {
  const t = setup([1, 2, 3, 4])
  expect(await t.next({ 2: 'b', 4: 'd' })).toEqual({ waitMs: 0 })
  expect(await t.next({ 4: 'e' })).toEqual({ waitMs: 0 })
  await t.next()
  expect(t.pieces).toEqual([
    { shards: [1, 2, 3, 4], after: [FIRST, FIRST, FIRST, FIRST], perShard: 25 },
    { shards: [2, 4], after: ['b', 'd'], perShard: 50 },
    { shards: [4], after: ['e'], perShard: 100 },
  ])
})

test('more shards than may be visited take turns', async () => {
  const t = setup([1, 2, 3], 2)
  await t.next()
  await t.next()
  expect(t.pieces.map(({ shards, perShard }) => [shards, perShard])).toEqual([
    [[1, 2], 1],
    [[3], 2],
  ])
})

test('a round begins every second where there is little to look at', async () => {
  const t = setup([1])
  expect(await t.next()).toEqual({ waitMs: 1_000 })
  t.clock.advance(999)
  expect(await t.next()).toEqual({ waitMs: 1 })
  t.clock.advance(1)
  await t.next()
  expect(t.pieces).toHaveLength(2)
})

test('what is looked at costs a twentieth of the time, also when it fails', async () => {
  const t = setup([1])
  await t.next({ 1: 'a' }, 30)
  const failing = t.rounds.next(async () => {
    t.clock.advance(30)
    throw new Error('away')
  })
  // Too early: the piece that took 30 ms is paid for by 600 ms.
  expect(await failing).toEqual({ waitMs: 600 })
  t.clock.advance(600)
  await expect(
    t.rounds.next(async () => {
      t.clock.advance(40)
      throw new Error('away')
    }),
  ).rejects.toThrow('away')
  expect(await t.next()).toEqual({ waitMs: 800 })
  t.clock.advance(800)
  await t.next()
  expect(t.pieces.map(({ after }) => after)).toEqual([[FIRST], ['a']])
})

test('a piece that took very long is paid for by ten seconds at most, and no wait is longer than one', async () => {
  const t = setup([1])
  expect(await t.next({}, 60_000)).toEqual({ waitMs: 1_000 })
  t.clock.advance(9_999)
  expect(await t.next()).toEqual({ waitMs: 1 })
})

test('a shard that was given away in the middle of a round is not gone through any further', async () => {
  const t = setup([1, 2])
  await t.rounds.next(async () => {
    t.rounds.own([2, 3])
    return new Map([
      [1, 'a'],
      [2, 'b'],
    ])
  })
  await t.next()
  t.clock.advance(1_000)
  await t.next()
  expect(t.pieces.map(({ shards }) => shards)).toEqual([[2], [2, 3]])
})
