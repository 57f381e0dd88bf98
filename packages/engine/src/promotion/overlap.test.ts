import { expect, test } from 'vitest'
import { OVERLAP, type Overlap } from '../job/states.ts'
import { type Alive, type Fate, fateOf, MAX_WAITING } from './overlap.ts'

const NOTHING: Alive = { any: false, others: false, waiting: 0 }
const BACKFILL: Alive = { any: true, others: false, waiting: 0 }
const ONE: Alive = { any: true, others: true, waiting: 0 }
const ONE_AND_A_WAITING: Alive = { any: true, others: true, waiting: 1 }

/** In short: r ready, b blocked, o overlap, s superseded; C asks what is alive to stop, S ends what waits. */
function shown(policy: Overlap, times: number[], alive: Alive): string {
  const fate = fateOf(OVERLAP[policy], times, alive)
  const skipped = (at: number) => fate.skips.find(({ from, to }) => from <= at && at < to)?.reason
  const letter = (at: number) =>
    fate.ready.includes(at) ? 'r' : fate.blocked.includes(at) ? 'b' : skipped(at) === 'overlap' ? 'o' : 's'
  return `${times.map(letter).join('')}${fate.cancels ? ' C' : ''}${fate.supersedes ? ' S' : ''}`
}

test.each<[Overlap, string, string, string, string]>([
  // nothing alive, a backfill, a run, a run and one that waits
  ['allow', 'rrrr', 'rrrr', 'rrrr', 'rrrr'],
  ['skip', 'ooor', 'ooob', 'oooo', 'oooo'],
  ['buffer_one', 'rboo', 'booo', 'booo', 'oooo'],
  ['buffer_latest', 'rssb', 'sssb', 'sssb', 'sssb S'],
  ['buffer_all', 'rbbb', 'bbbb', 'bbbb', 'bbbb'],
  ['cancel_running', 'sssr', 'sssb', 'sssb C', 'sssb C'],
])('four times at once under %s, whatever they meet', (policy, ...expected) => {
  const met = [NOTHING, BACKFILL, ONE, ONE_AND_A_WAITING]
  expect(met.map((alive) => shown(policy, [1, 2, 3, 4], alive))).toEqual(expected)
})

test.each<[Overlap, string, string, string, string]>([
  ['skip', 'r', 'b', 'o', 'o'],
  ['buffer_one', 'r', 'b', 'b', 'o'],
  ['buffer_latest', 'r', 'b', 'b', 'b S'],
  ['buffer_all', 'r', 'b', 'b', 'b'],
  ['cancel_running', 'r', 'b', 'b C', 'b C'],
])('one time under %s, whatever it meets', (policy, ...expected) => {
  const met = [NOTHING, BACKFILL, ONE, ONE_AND_A_WAITING]
  expect(met.map((alive) => shown(policy, [1], alive))).toEqual(expected)
})

test('under buffer_all a thousand wait, and what comes then is skipped', () => {
  const fate = fateOf(OVERLAP.buffer_all, [1, 2, 3], { ...ONE, waiting: MAX_WAITING - 1 })
  expect(fate).toMatchObject<Partial<Fate>>({
    blocked: [1],
    skips: [{ from: 2, to: 4, reason: 'overlap', count: 2 }],
  })
})

test('no time decides nothing, whatever waits', () => {
  for (const policy of Object.values(OVERLAP))
    expect(fateOf(policy, [], ONE_AND_A_WAITING)).toEqual({
      ...{ ready: [], blocked: [], skips: [] },
      ...{ supersedes: false, cancels: false },
    })
})
