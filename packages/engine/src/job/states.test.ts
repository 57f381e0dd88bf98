import { expect, test } from 'vitest'
import {
  ATTEMPT_REASON,
  CATCH_UP,
  CAUSE,
  FAILURE_CLASS,
  nameOf,
  OUTCOME,
  OVERLAP,
  RUN_STATE,
  SKIP_REASON,
} from './states.ts'
import { type Place, TRANSITIONS } from './transitions.ts'

test.each([
  ['RUN_STATE', RUN_STATE],
  ['OUTCOME', OUTCOME],
  ['CAUSE', CAUSE],
  ['FAILURE_CLASS', FAILURE_CLASS],
  ['ATTEMPT_REASON', ATTEMPT_REASON],
  ['OVERLAP', OVERLAP],
  ['CATCH_UP', CATCH_UP],
  ['SKIP_REASON', SKIP_REASON],
])('in %s every number stands for one word', (_, words: Record<string, number>) => {
  expect(new Set(Object.values(words)).size).toBe(Object.keys(words).length)
  for (const [name, value] of Object.entries(words)) expect(nameOf(words, value)).toBe(name)
  expect(nameOf(words, 99)).toBeUndefined()
})

test('every live place can be reached, and has a way out to the end', () => {
  const reach = (start: Place, step: (place: Place) => Place[]) => {
    const seen = new Set<Place>([start])
    for (const place of seen) for (const next of step(place)) seen.add(next)
    return seen
  }
  const forward = (place: Place) => TRANSITIONS.filter(({ from }) => from.includes(place)).map(({ to }) => to)
  const places: Place[] = [...(Object.keys(RUN_STATE) as Place[]), 'finished']
  for (const place of places) {
    expect(reach('absent', forward).has(place), `absent → ${place}`).toBe(true)
    expect(reach(place, forward).has('finished'), `${place} → finished`).toBe(true)
  }
})

test('a run becomes leased from ready or is born so', () => {
  const sources = TRANSITIONS.filter(({ to }) => to === 'leased').flatMap(({ from }) => from)
  expect(new Set(sources)).toEqual(new Set(['absent', 'ready', 'leased']))
})

test('whatever ends an attempt or a run says how it ended', () => {
  for (const { verb, from, to, outcomes } of TRANSITIONS) {
    // What goes back before it began leaves nothing.
    if (verb === 'give_back') continue
    for (const place of from) {
      const endsAttempt = place === 'leased' && to !== 'leased'
      expect(outcomes !== undefined, `${verb}: ${place} → ${to}`).toBe(endsAttempt || to === 'finished')
    }
  }
})
