import { expect, test } from 'vitest'
import type { BelfryError } from '../errors.ts'
import { jobGraph } from './job-graph.ts'
import type { JobOfCall } from './job-input.ts'
import { understandJob } from './understand-job.ts'

const understand = (jobs: readonly JobOfCall[]) =>
  jobs.map((job) => understandJob({ queue: 'q', payload: 1, ...job }, { now: 0, inCall: true }))
const after = (...jobs: string[]) => ({ after: { jobs } })

function refusal(jobs: readonly JobOfCall[]) {
  try {
    jobGraph(understand(jobs))
  } catch (error) {
    const { message, complaints, position } = error as BelfryError & { position: number }
    return { message, path: complaints[0]?.path, suggestion: complaints[0]?.suggestion, position }
  }
  return null
}

test('jobs that wait for nobody need no graph, and those that do stand after what they wait for', () => {
  expect(jobGraph(understand([{}, {}]))).toBeNull()
  const id = '019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70'
  const graph = jobGraph(understand([{ ref: 'c', ...after('b', 'a', id) }, { ref: 'b', ...after('a') }, { ref: 'a' }]))
  expect(graph?.parentsOf).toEqual([[1, 2, id], [2], []])
  expect(graph?.order).toEqual([2, 1, 0])
})

test('names that nobody has, or two have, are refused with their place', () => {
  expect(refusal([{ ref: 'import' }, after('improt')])).toEqual({
    message: 'after.jobs[0]: "improt" is neither the id of a job nor the ref of one in this call',
    path: 'after.jobs[0]',
    suggestion: 'import',
    position: 1,
  })
  expect(refusal([{ ref: 'a' }, {}, { ref: 'a' }])).toMatchObject({ path: 'ref', position: 2 })
})

test('a cycle is told along its path, and a long one in short', () => {
  expect(refusal([{ ref: 'a', ...after('a') }])?.message).toBe('after: waits for itself: a → a')
  expect(
    refusal([
      { ref: 'a', ...after('b') },
      { ref: 'b', ...after('c') },
      { ref: 'c', ...after('b') },
    ])?.message,
  ).toBe('after: waits for itself: b → c → b')
  const many = Array.from({ length: 10_000 }, (_, i) => ({ ref: `j${i}`, ...after(`j${(i + 1) % 10_000}`) }))
  expect(refusal(many)?.message).toBe(
    'after: waits for itself: j0 → j1 → j2 → j3 → j4 → j5 → j6 → j7 → … 9991 more … → j9999 → j0',
  )
})

test('what cannot stand together, or is too much, is refused', () => {
  const said = (job: object, inCall = true) => {
    try {
      understandJob({ queue: 'q', payload: 1, ...job }, { now: 0, inCall })
    } catch (error) {
      return (error as BelfryError).complaints.map(({ path, message }) => `${path}: ${message}`)
    }
    return []
  }
  for (const field of [
    { runAt: '2026-01-01T00:00:00Z' },
    { delay: '1h' },
    { every: 'PT1M' },
    { maxRuns: 3 },
    { jitter: '1s' },
  ])
    expect(said({ ...after('a'), ...field })[0]).toContain('cannot stand beside after')
  expect(said({ onParentFailure: 'run' })).toEqual(['onParentFailure: has no meaning without after'])
  expect(said({ after: { jobs: ['a'], on: 'finish' }, onParentFailure: 'run' })[0]).toContain(
    'only who waits for success',
  )
  expect(said({ ref: 'a' }, false)).toEqual(['ref: only has a meaning in a call that creates several jobs'])
  expect(said({ ref: '019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70' })).toEqual(['ref: must not look like the id of a job'])
  expect(said({ after: { jobs: [] } })[0]).toContain('must be a list of at least one job')
  expect(said({ after: ['a'] })[0]).toContain('after: must be an object')
  expect(said({ after: { jobs: [1] } })[0]).toBe('after.jobs[0]: must be a text, not 1')
  expect(said({ after: { jobs: ['a'], when: 1 } })[0]).toContain('is not a field of after')
  expect(said(after(...Array.from({ length: 1_001 }, (_, i) => `j${i}`)))[0]).toContain('at most 1000 jobs, not 1001')
  expect(said(after(...Array.from({ length: 3_000 }, (_, i) => `j${i % 10}`)))).toEqual([])
})
