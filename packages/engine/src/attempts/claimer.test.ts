import { expect, test } from 'vitest'
import type { Claimed } from '../leases/take-lease.ts'
import { Turns } from '../ready/turn.ts'
import { ManualClock } from '../runtime/clock.ts'
import { Claimer, type Room } from './claimer.ts'
import type { Taken } from './taken.ts'

const LEVEL = 5

/** A queue of turns, and claims that answer when the test says so. */
function setup(turns: number[]) {
  let ready = [...turns]
  const asked: { wanted: Room; answer: () => void; fail: () => void }[] = []
  let waiting: number[] = []
  let room = 1_000
  const taker = {
    queueId: 1,
    credit: () => room,
    freeSlots: () => 0,
    wantsMore: () => room > 0,
    firstWaiting: () => waiting[0] ?? null,
    lease: (wanted: Room) => {
      const from = wanted.levels[0]?.watermark ?? 0
      const taken = ready.filter((turn) => turn >= from).slice(0, wanted.limit)
      ready = ready.filter((turn) => !taken.includes(turn))
      return new Promise<Taken>((resolve, reject) => {
        const answer = () => {
          waiting = [...waiting, ...taken].sort((a, b) => a - b)
          const claimed = taken.map((turn) => ({ turn, priority: LEVEL }) as Claimed)
          const reached = new Map(taken.length === 0 ? [] : [[LEVEL, taken.at(-1) as number]])
          resolve({ claimed, mayBeMore: claimed.length === wanted.limit, reached, onceWaits: false, isHeld: false })
        }
        let isOver = false
        const fail = () => {
          if (isOver) return
          isOver = true
          ready = [...ready, ...taken].sort((a, b) => a - b)
          reject(new Error('no'))
        }
        asked.push({ wanted, answer, fail })
      })
    },
  }
  const claimer = new Claimer(taker, { clock: new ManualClock(), turns: new Turns() })
  return {
    claimer,
    asked,
    ready: () => ready,
    waiting: () => waiting,
    arrive: (turn: number) => {
      ready = [...ready, turn].sort((a, b) => a - b)
      claimer.hint(LEVEL, turn)
    },
    setRoom: (count: number) => {
      room = count
    },
  }
}

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, n) => from + n)

/** A backlog of which the first part is leased and waits for slots, and a claim of the next part is under way. */
async function behindBacklog() {
  const t = setup(range(1_000, 500))
  t.claimer.hint(LEVEL, 1_000)
  t.setRoom(100)
  const first = t.claimer.runOnce()
  t.asked[0]?.answer()
  await first
  const step = t.claimer.runOnce()
  step.catch(() => {})
  await turnOfLoop()
  expect(t.asked).toHaveLength(2)
  return { ...t, step }
}

test('whoever stands before what was leased does not wait for the claim that is under way', async () => {
  const t = await behindBacklog()
  for (const turn of [10, 20, 30]) t.arrive(turn)
  await turnOfLoop()
  expect(t.asked).toHaveLength(3)
  expect(t.asked[2]?.wanted.limit).toBe(4)
  t.asked[2]?.answer()
  await turnOfLoop()
  expect(t.waiting().slice(0, 3)).toEqual([10, 20, 30])
  t.asked[1]?.answer()
  await t.step
})

test('a step is not over before the claim beside it', async () => {
  const t = await behindBacklog()
  t.arrive(10)
  await turnOfLoop()
  t.asked[1]?.answer()
  let isOver = false
  const over = t.step.then(() => {
    isOver = true
  })
  await turnOfLoop()
  expect(isOver).toBe(false)
  t.asked[2]?.answer()
  await over
})

/** Claims until nothing is ready any more, without being told of anything. */
async function claimTheRest(t: Awaited<ReturnType<typeof behindBacklog>>): Promise<void> {
  t.setRoom(10_000)
  while (t.ready().length > 0) {
    const before = t.asked.length
    const step = t.claimer.runOnce()
    await turnOfLoop()
    expect(t.asked.length).toBe(before + 1)
    t.asked.at(-1)?.answer()
    await step
  }
}

test.each([
  ['the claim', 'before'],
  ['the claim', 'after'],
  ['the claim beside it', 'before'],
  ['the claim beside it', 'after'],
])('what %s could not lease is found by the next, if it fails %s the other has ended', async (which, when) => {
  const t = await behindBacklog()
  t.arrive(10)
  await turnOfLoop()
  const [fails, succeeds] = which === 'the claim' ? [t.asked[1], t.asked[2]] : [t.asked[2], t.asked[1]]
  if (when === 'before') fails?.fail()
  await turnOfLoop()
  succeeds?.answer()
  await turnOfLoop()
  fails?.fail()
  await t.step.catch(() => {})
  await claimTheRest(t)
  expect(t.waiting()).toEqual([10, ...range(1_000, 500)])
})

test('those that the claim beside has no room for are found by the next', async () => {
  const t = await behindBacklog()
  t.setRoom(1)
  for (const turn of [10, 20, 30]) t.arrive(turn)
  await turnOfLoop()
  t.asked[2]?.answer()
  await turnOfLoop()
  t.asked[1]?.answer()
  t.setRoom(0)
  await t.step
  await claimTheRest(t)
  expect(t.waiting()).toEqual([10, 20, 30, ...range(1_000, 500)])
})

test('two claims under way do not count on the same free slots', async () => {
  const asked: { room: Room; answer: (taken: Taken) => void }[] = []
  const claimer = new Claimer(
    {
      queueId: 1,
      credit: () => 100,
      freeSlots: () => 2,
      wantsMore: () => true,
      firstWaiting: () => 50,
      lease: (room) => new Promise((answer) => asked.push({ room, answer })),
    },
    { clock: new ManualClock(0), turns: new Turns() },
  )
  claimer.hint(5, 1_000)
  const first = claimer.runOnce()
  await new Promise((resolve) => setImmediate(resolve))
  asked[0]?.answer({
    claimed: [{ turn: 1_000, priority: 5 } as never],
    mayBeMore: true,
    reached: new Map([[5, 1_000]]),
    onceWaits: false,
    isHeld: false,
  })
  await first
  void claimer.runOnce()
  await new Promise((resolve) => setImmediate(resolve))
  claimer.hint(5, 10)
  await new Promise((resolve) => setImmediate(resolve))
  expect(asked.slice(1).map(({ room }) => room.freeSlots)).toEqual([2, 0])
})
