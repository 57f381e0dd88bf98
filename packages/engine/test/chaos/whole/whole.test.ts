import { expect, test } from 'vitest'
import { seededRandom } from '../../../src/runtime/random.ts'
import { MEMBERS, planFaults } from './fault-plan.ts'
import type { Happened } from './faults.ts'
import { readChaosOptions } from './options.ts'
import type { Sighting } from './receiver.ts'
import { judgeOnce, judgeOverlaps, kindOf } from './verdict.ts'

const MINUTE_MS = 60_000
const JOB = '01a1efa6-f378-700e-82a6-04102de8ddaa'
const OTHER = '01a1efa6-f378-700e-82a6-04102de8ddab'
const RUN = `${JOB}.mwmdseko`

const seen = (what: Sighting['what'], at: number, more: Partial<Sighting> = {}): Sighting => ({
  ...{ what, at, runId: RUN, attempt: 1, by: 'library-1' },
  ...more,
})

test('a seed always plans the same faults, of all kinds, and all are over in time', () => {
  for (const seed of [1, 2, 3]) {
    const plan = planFaults(seededRandom(seed), 10 * MINUTE_MS)
    expect(planFaults(seededRandom(seed), 10 * MINUTE_MS)).toEqual(plan)
    expect(plan.filter(({ kind }) => kind === 'crash')).toHaveLength(2)
    expect(planFaults(seededRandom(seed), 10 * MINUTE_MS, 5).filter(({ kind }) => kind === 'crash')).toHaveLength(5)
    for (const kind of ['kill', 'stop']) expect(plan.filter((fault) => fault.kind === kind).length).toBeGreaterThan(30)
    expect(plan.every(({ atMs, lastsMs }) => atMs + lastsMs <= 10 * MINUTE_MS)).toBe(true)
  }
})

test('a process that is down is not hit again, and never are all of a kind down', () => {
  const plan = planFaults(seededRandom(4), 30 * MINUTE_MS).flatMap((fault) => (fault.kind === 'crash' ? [] : [fault]))
  for (const { atMs, member } of plan) {
    const down = plan.filter((other) => other.atMs < atMs && other.atMs + other.lastsMs > atMs)
    expect(down.map((other) => other.member)).not.toContain(member)
    const away = new Set([...down.map((other) => other.member), member])
    for (const names of Object.values(MEMBERS)) expect(names.every((name) => away.has(name))).toBe(false)
  }
})

test('what is asked for on the command line is checked', () => {
  expect(readChaosOptions([], () => 0.5)).toEqual({ minutes: 10, seed: 2_147_483_647, failovers: 0 })
  expect(readChaosOptions(['--minutes', '0.5', '--seed', '7', '--failovers', '3'], () => 0)).toEqual({
    ...{ minutes: 0.5, seed: 7, failovers: 3 },
  })
  for (const words of [
    ['--minutes', 'x'],
    ['--minutes', '1000'],
    ['--seed', '-1'],
    ['--failovers', 'x'],
    ['--sed', '1'],
    ['more'],
  ])
    expect(readChaosOptions(words, () => 0)).toBeTypeOf('string')
})

test('two attempts of a run that is performed at most once are a double, also under different numbers', () => {
  const once = { jobId: JOB, atMostOnce: true, key: null }
  const sightings = [seen('began', 0), seen('ended', 10), seen('began', 20, { attempt: 2 })]
  const judged = (atMostOnce: boolean) =>
    judgeOnce({ oneOffs: new Map([[JOB, { ...once, atMostOnce }]]), recurring: [], sightings })
  expect(judged(true)).toMatchObject([{ kind: 'doubled', jobId: JOB }])
  expect(judged(false)).toEqual([])
})

test('attempts of a key that overlap are found, unless a performer was stopped meanwhile', () => {
  const job = (jobId: string, limit: number) => ({ jobId, atMostOnce: false, key: { key: 'k', limit } })
  const sightings = [
    seen('began', 100_000),
    seen('began', 100_050, { runId: `${OTHER}.mwmdseko`, by: 'library-2' }),
    seen('ended', 100_100),
    seen('ended', 100_150, { runId: `${OTHER}.mwmdseko`, by: 'library-2' }),
  ]
  const judged = (limit: number, faults: Happened[]) =>
    judgeOverlaps({ oneOffs: new Map([JOB, OTHER].map((id) => [id, job(id, limit)])), sightings, faults })
  const stop = { kind: 'stop', member: 'library-2', atMs: 0, lastsMs: 20, beganAt: 100_060, overAt: 100_080 } as const
  expect(judged(1, [])).toMatchObject([{ kind: 'over limit', jobId: OTHER }])
  expect(judged(3, [])).toEqual([])
  expect(judged(1, [stop])).toEqual([])
  expect(judged(1, [{ ...stop, member: 'worker-1' }])).toHaveLength(1)
})

test('the words of the auditor are told apart', () => {
  expect(kindOf(`${RUN} 1 was performed 2 times`)).toBe('doubled')
  expect(kindOf(`${RUN} 1 succeeded, and nobody performed it`)).toBe('lost')
  expect(kindOf(`${RUN} ended 0 times`)).toBe('lost')
  expect(kindOf(`${RUN} ended 2 times`)).toBe('doubled')
  expect(kindOf(`${RUN} is still in runs`)).toBe('stuck')
})
