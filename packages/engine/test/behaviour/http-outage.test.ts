import { expect, test } from 'vitest'
import { fail, hang, ok, startHttpNodes, startTarget } from './http-kit.ts'
import { MINUTE, SECOND, START } from './kit.ts'

interface Attempt {
  job_id: string
  number: number
  counted: boolean
  final: boolean
  outcome: number
  class: number | null
}

const CLASS = { timeout: 1, network: 2, http_5xx: 4, circuit_open: 10 }
const FAILED = 2

function busiestSecond(times: number[]): number {
  const perSecond = new Map<number, number>()
  for (const at of times) perSecond.set(Math.floor(at / SECOND), (perSecond.get(Math.floor(at / SECOND)) ?? 0) + 1)
  return Math.max(0, ...perSecond.values())
}

test('a target that fails for a minute, in every way, is spared, and recovers without a storm', {
  timeout: 240_000,
}, async () => {
  const t = await startHttpNodes({ nodes: 2 })
  const target = await startTarget(t.clock)
  const perSecond = 4
  const during = (from: number, to: number) =>
    target.seen.filter(({ at }) => at >= START + from * SECOND && at < START + to * SECOND)
  let created = 0
  /** Jobs come steadily, whatever the target does. */
  const live = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      created += (
        await t.jobs.createMany(
          Array(perSecond).fill({ http: { url: target.url }, timeout: '5s', retry: { maxAttempts: 10 } }),
        )
      ).length
      await t.pass(SECOND, SECOND / 2)
    }
  }
  await live(10)
  target.answer = fail
  await live(20)
  target.answer = hang
  await live(20)
  await target.refuse()
  target.answer = ok
  await live(20)
  await target.accept()
  await live(20)
  await t.pass(15 * MINUTE, SECOND / 2)

  // Spared: until the circuits of both nodes had opened, and then by single probes.
  expect(during(10, 70).length).toBeLessThan(100)
  expect(during(25, 70).length).toBeLessThan(20)
  // No storm: what comes new, what waited at the rate of before, and few retries.
  expect(busiestSecond(during(70, 1_000).map(({ at }) => at))).toBeLessThanOrEqual(2 * 10 + perSecond + 4)

  const attempts = await t.query<Attempt>(
    'select job_id, number, counted, final, outcome, failure_class as class from attempts order by job_id, number',
  )
  const runs = new Map<string, Attempt[]>()
  for (const attempt of attempts) runs.set(attempt.job_id, [...(runs.get(attempt.job_id) ?? []), attempt])
  expect(runs.size).toBe(created)
  for (const run of runs.values()) {
    expect(run.map(({ number }) => number)).toEqual(run.map((_, i) => i + 1))
    expect(run.at(-1)).toMatchObject({ final: true, outcome: 1, class: null })
    for (const attempt of run.slice(0, -1)) {
      expect(attempt.final).toBe(false)
      if (attempt.counted) {
        expect(attempt.outcome).toBe(FAILED)
        expect([CLASS.timeout, CLASS.network, CLASS.http_5xx]).toContain(attempt.class)
      } else expect(attempt.class).toBe(CLASS.circuit_open)
    }
  }
  const classes = new Set(attempts.map((attempt) => attempt.class))
  expect(classes).toContain(CLASS.http_5xx)
  expect(classes).toContain(CLASS.circuit_open)
  expect(await t.query('select 1 from dead_letters')).toEqual([])
  expect(await t.query('select 1 from runs')).toEqual([])
  expect(await t.query('select 1 from circuits')).toEqual([])
})

test('a slow origin does not starve another in the same queue', { timeout: 60_000 }, async () => {
  const t = await startHttpNodes({ http: { slots: { perOrigin: 20, total: 60 } } })
  const slow = await startTarget(t.clock, hang)
  const quick = await startTarget(t.clock)
  await t.jobs.createMany(Array(300).fill({ http: { url: slow.url }, timeout: '10m' }))
  await t.node.step()
  t.clock.advance(5 * SECOND)
  await t.node.step()
  await t.jobs.createMany(Array(200).fill({ http: { url: quick.url } }))
  for (let i = 0; i < 20 && quick.seen.length < 200; i++) {
    t.clock.advance(100)
    await t.node.step()
  }
  expect(quick.seen).toHaveLength(200)
  expect(slow.seen).toHaveLength(20)
  expect(slow.most).toBe(20)
  const held = await t.query('select distinct failure_class, counted from attempts where outcome = 6')
  expect(held).toEqual([{ failure_class: CLASS.circuit_open, counted: false }])
})

test('what waits for a slot when the circuit opens is not sent', async () => {
  const t = await startHttpNodes({ http: { slots: { perOrigin: 20, total: 100 } } })
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const target = await startTarget(t.clock, async (response, request, seen) => {
    await gate
    fail(response, request, seen)
  })
  await t.jobs.createMany(Array(100).fill({ http: { url: target.url }, retry: { maxAttempts: 1 } }))
  await t.node.step()
  expect(target.seen).toHaveLength(20)
  letGo()
  await t.node.rest()
  // Each slot that became free before the twentieth failure took one more.
  expect(target.seen.length).toBeLessThan(60)
  const [{ n }] = (await t.query('select count(*)::int as n from runs where state = 2 and failures = 0')) as [
    { n: number },
  ]
  expect(n).toBe(100 - target.seen.length)
})
