import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Exchange } from './exchange.ts'
import { type Charged, Turns } from './turn.ts'

const START = Date.UTC(2026, 0, 1)
const STEP = 30_000_000
const QUEUE = 7
/** Until a queue has been measured. */
const INTERVAL = 100_000

const run = (tenantId: number, priority = 5, fairnessKey: number | null = null): Charged => ({
  queueId: QUEUE,
  tenantId,
  fairnessKey,
  priority,
})

interface Waiting extends Charged {
  turn: number
  n: number
}

/** A queue as the database keeps it: claims take the smallest turns. */
function queueOf(turns: Turns) {
  const waiting: Waiting[] = []
  let n = 0
  return {
    waiting,
    add: (now: number, charged: Charged, by = turns) => {
      const added = { ...charged, turn: by.next(now, charged), n: n++ }
      waiting.push(added)
      return added
    },
    claim: (now: number, limit: number, by = turns): Waiting[] => {
      waiting.sort((a, b) => a.turn - b.turn || a.n - b.n)
      const claimed = waiting.splice(0, limit)
      by.claimed(now, QUEUE, { runs: claimed, mayBeMore: claimed.length === limit, firstWaiting: null })
      return claimed
    },
  }
}

const countOf = (runs: readonly Charged[], tenantId: number): number =>
  runs.filter((one) => one.tenantId === tenantId).length

test('alone in an idle queue a turn is the time, less 30 s for each level above 5', () => {
  const turns = new Turns()
  for (let priority = 0; priority < 10; priority++) {
    expect(turns.next(START, run(priority + 1, priority))).toBe(START * 1_000 - (priority - 5) * STEP)
  }
})

test('the next run of a tenant stands an interval behind, and that of another tenant beside the first', () => {
  const turns = new Turns()
  expect([1, 1, 1, 2, 2].map((tenant) => turns.next(START, run(tenant)) - START * 1_000)).toEqual([
    0,
    INTERVAL,
    2 * INTERVAL,
    0,
    INTERVAL,
  ])
})

test('a run waits only behind those of its flow that have its priority or a higher one', () => {
  const turns = new Turns()
  const startOf = (priority: number) => turns.next(START, run(1, priority)) + (priority - 5) * STEP - START * 1_000
  expect(startOf(5)).toBe(0)
  expect(startOf(9)).toBe(0)
  // What the higher one cost, the lower ones pay too.
  expect(startOf(5)).toBe(2 * INTERVAL)
  expect(startOf(0)).toBe(3 * INTERVAL)
  expect(startOf(9)).toBe(INTERVAL)
})

test('keys of a tenant take turns in its own queue, and count as one in a queue that tenants share', () => {
  const turns = new Turns()
  expect([1, 2].map((key) => turns.next(START, run(1, 5, key)))).toEqual([START * 1_000, START * 1_000])
  const shared = new Turns()
  shared.learn({ shared: new Set([QUEUE]), weights: new Map() })
  expect([1, 2].map((key) => shared.next(START, run(1, 5, key)) - START * 1_000)).toEqual([0, INTERVAL])
})

test('whatever is charged, in whatever order: starts are as the formula says', () => {
  const charge = fc.record({
    tenantId: fc.integer({ min: 1, max: 3 }),
    priority: fc.integer({ min: 0, max: 9 }),
    passMs: fc.constantFrom(0, 0, 1, 50, 1_000),
  })
  fc.assert(
    fc.property(fc.array(charge, { maxLength: 200 }), (charges) => {
      const turns = new Turns()
      turns.learn({ shared: new Set(), weights: new Map([[3, 4]]) })
      const finish = new Map<string, number>()
      let now = START
      for (const { tenantId, priority, passMs } of charges) {
        now += passMs
        const at = (level: number) => Math.max(now * 1_000, finish.get(`${tenantId}/${level}`) ?? 0)
        const start = at(priority)
        expect(turns.next(now, run(tenantId, priority))).toBe(start - (priority - 5) * STEP)
        for (let level = 0; level <= priority; level++) {
          finish.set(`${tenantId}/${level}`, at(level) + INTERVAL / (tenantId === 3 ? 4 : 1))
        }
      }
    }),
  )
})

test('of a backlog every flow gets its share by weight, at any moment, to a run or two', () => {
  const weights = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 2, maxLength: 6 })
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 40 }), (flows, batch) => {
      const turns = new Turns()
      turns.learn({ shared: new Set(), weights: new Map(flows.map((weight, i) => [i + 1, weight])) })
      const queue = queueOf(turns)
      const total = flows.reduce((sum, weight) => sum + weight, 0)
      flows.forEach((weight, i) => {
        for (let n = 0; n < 60 * weight; n++) queue.add(START, run(i + 1))
      })
      const served: Waiting[] = []
      while (served.length < 40 * total) served.push(...queue.claim(START, batch))
      flows.forEach((weight, i) => {
        const share = (served.length * weight) / total
        expect(Math.abs(countOf(served, i + 1) - share)).toBeLessThanOrEqual(weight + 2)
      })
    }),
    { numRuns: 30 },
  )
})

test('whoever comes while another has a hundred thousand runs is next, whenever he comes', () => {
  const turns = new Turns()
  const queue = queueOf(turns)
  for (let n = 0; n < 20_000; n++) queue.add(START, run(1))
  for (let claims = 1; claims <= 20; claims++) {
    const now = START + claims * 10
    queue.claim(now, 50)
    const other = queue.add(now, run(2))
    expect(queue.claim(now, 2)).toContain(other)
  }
})

test('what is leased ahead of a slot has not been served: whoever comes stands before it', () => {
  const turns = new Turns()
  const queue = queueOf(turns)
  for (let n = 0; n < 300; n++) queue.add(START, run(1))
  const begun = queue.claim(START, 100).at(-1) as Waiting
  const ahead = queue.waiting.splice(0, 100)
  const [first, last] = [ahead[0], ahead.at(-1)] as [Waiting, Waiting]
  turns.claimed(START, QUEUE, { runs: ahead, mayBeMore: true, firstWaiting: first.turn })
  const comes = queue.add(START, run(2))
  expect([begun.turn, first.turn - INTERVAL]).toEqual([comes.turn, comes.turn])
  // Nor do the runs that are ready behind them, as the pulse finds them.
  turns.saw(START, QUEUE, [...new Array(5).fill(null), last.turn + INTERVAL, ...new Array(24).fill(null)])
  expect(turns.again(START, { queueId: QUEUE, priority: 5 })).toBeLessThanOrEqual(first.turn)
  // It is leased after them, and by itself does not say how far the queue is.
  turns.claimed(START, QUEUE, { runs: [comes], mayBeMore: true, firstWaiting: comes.turn })
  expect(queue.add(START, run(3)).turn).toBeLessThanOrEqual(first.turn)
  turns.claimed(START, QUEUE, { runs: queue.waiting.splice(0, 1), mayBeMore: true, firstWaiting: null })
  expect(queue.add(START, run(4)).turn).toBe(last.turn + INTERVAL)
})

test('however many claims wait for slots, and in whatever order they were made, a queue is as far as what has begun', () => {
  const turns = new Turns()
  const queue = queueOf(turns)
  for (let n = 0; n < 1_000; n++) queue.add(START, run(1))
  // What was created later may be seen earlier, and is then leased first.
  const far = queue.waiting.splice(900, 100)
  const firstWaiting = queue.waiting[0]?.turn ?? 0
  turns.claimed(START, QUEUE, { runs: far, mayBeMore: true, firstWaiting: far[0]?.turn ?? 0 })
  for (let n = 0; n < 150; n++) {
    turns.claimed(START, QUEUE, { runs: queue.waiting.splice(0, 4), mayBeMore: true, firstWaiting })
  }
  expect(queue.add(START, run(2)).turn).toBeLessThanOrEqual(firstWaiting)
  const next = queue.waiting[0]?.turn ?? 0
  turns.claimed(START, QUEUE, { runs: queue.waiting.splice(0, 1), mayBeMore: true, firstWaiting: next })
  expect(queue.add(START, run(3)).turn).toBeLessThanOrEqual(next)
})

test('new work is not behind a backlog that has stood still for an hour, and does not pass it either', () => {
  const old = new Turns()
  const queue = queueOf(old)
  for (let n = 0; n < 300; n++) queue.add(START, run(1))
  const now = START + 3_600_000
  const fresh = new Turns()
  fresh.saw(now, QUEUE, [...new Array(5).fill(null), queue.waiting[0]?.turn ?? null, ...new Array(24).fill(null)])
  for (let n = 0; n < 300; n++) queue.add(now, run(2), fresh)
  const served = queue.claim(now, 200, fresh)
  expect(countOf(served, 1)).toBeGreaterThanOrEqual(95)
  expect(countOf(served, 2)).toBeGreaterThanOrEqual(95)
})

test('a run that is ready again stands where the queue is, whatever the clock says', () => {
  const turns = new Turns()
  const queue = queueOf(turns)
  for (let n = 0; n < 1_000; n++) queue.add(START, run(1))
  const last = queue.claim(START + 1, 500).at(-1) as Waiting
  expect(turns.again(START + 1, { queueId: QUEUE, priority: 5 })).toBe(last.turn)
  expect(turns.again(START + 1, { queueId: QUEUE, priority: 0 })).toBe(last.turn + 5 * STEP)
  expect(turns.floors(START + 1)).toEqual({ queueIds: [QUEUE], starts: [last.turn] })
  expect(turns.again(START + 1, { queueId: 8, priority: 5 })).toBe((START + 1) * 1_000)
})

/** A queue that serves so many a second, and has as much to do or more. */
function overloaded(perSecond: number, arrivals: number, arrive: (n: number) => Charged) {
  const turns = new Turns()
  const queue = queueOf(turns)
  let now = START
  let n = 0
  const second = (): Waiting[] => {
    now += 1_000
    for (let i = 0; i < arrivals; i++) queue.add(now, arrive(n++))
    return queue.claim(now, perSecond)
  }
  return { queue, second, now: () => now }
}

test.each([
  ['one tenant', 10, 20, () => run(1, 9)],
  ['four tenants', 40, 80, (n: number) => run(1 + (n % 4), 9)],
  ['a new tenant for each', 10, 10, (n: number) => run(1_000 + n, 9)],
])(
  'work of priority 0 starts within 270 s though priority 9 of %s arrives without end',
  (_, perSecond, arrivals, arrive) => {
    // As many as an interval of 100 ms is the fair one for.
    const { queue, second, now } = overloaded(perSecond, arrivals, arrive)
    for (let i = 0; i < 20; i++) second()
    const ahead = queue.waiting.length
    const last = queue.add(now(), run(500, 0))
    let seconds = 0
    const most = 270 + ahead / perSecond
    while (seconds <= most && !second().includes(last)) seconds++
    expect(seconds).toBeGreaterThan(150)
    expect(seconds).toBeLessThanOrEqual(most)
  },
)

test('priority buys no lasting share', () => {
  const turns = new Turns()
  const queue = queueOf(turns)
  for (let n = 0; n < 10_000; n++) {
    queue.add(START, run(1, 9))
    queue.add(START, run(2, 5))
  }
  const headStart = (4 * STEP) / INTERVAL
  const first = queue.claim(START, headStart)
  expect(countOf(first, 1)).toBe(headStart)
  const after = queue.claim(START, 2_000)
  expect(Math.abs(countOf(after, 1) - 1_000)).toBeLessThanOrEqual(2)
})

test('a tenant that enters through three nodes gets one share', () => {
  const nodes = [0, 1, 2].map(() => new Turns())
  const exchanges = nodes.map((turns) => new Exchange(turns))
  const queue = queueOf(nodes[0] as Turns)
  const fleet = (told: unknown[], i: number) => ({
    shared: [],
    weights: [],
    nodes: told.flatMap((charges, j) =>
      j === i || charges === null
        ? []
        : [{ id: String(j), isLive: true, charges: JSON.parse(JSON.stringify(charges)) }],
    ),
  })
  exchanges.forEach((exchange) => {
    exchange.hear(START, { shared: [], weights: [], nodes: [] })
  })
  for (let second = 0; second < 20; second++) {
    const now = START + second * 1_000
    for (let n = 0; n < 30; n++) {
      for (const turns of nodes) queue.add(now, run(1), turns)
      for (let k = 0; k < 3; k++) queue.add(now, run(2), nodes[0])
    }
    const told = exchanges.map((exchange) => exchange.tell(now))
    exchanges.forEach((exchange, i) => {
      exchange.hear(now, fleet(told, i))
    })
  }
  const served = queue.claim(START + 20_000, 1_800)
  expect(countOf(served, 1) / served.length).toBeGreaterThan(0.475)
  expect(countOf(served, 1) / served.length).toBeLessThan(0.525)
})
