import { expect, test } from 'vitest'
import { CAUSE, SKIP_REASON } from '../../src/job/states.ts'
import { audit, type Verdict } from './auditor.ts'

const HOUR = 3_600_000
type Row = Record<string, unknown>

/** What the auditor says of one job that was meant for the hours 1, 2 and 3. */
async function findingsOf({
  runs = [],
  skips = [],
  ...job
}: {
  runs?: number[]
  skips?: Row[]
  maxRuns?: number
  verdict?: Verdict
}) {
  const { verdict = 'either', maxRuns } = job
  const rows: Record<string, Row[]> = {
    nominal_at: runs.map((hour) => ({ job_id: 'a', nominal: hour * HOUR, cause: CAUSE.schedule })),
    from_nominal: skips.map((skip) => ({ job_id: 'a', reason: SKIP_REASON.paused, count: null, ...skip })),
  }
  const query = async (text: string) => rows[text.includes('from_nominal') ? 'from_nominal' : 'nominal_at'] as Row[]
  const times = new Map([1, 2, 3].map((hour) => [hour * HOUR, verdict]))
  const found = await audit(query, [{ jobId: 'a', says: '', times, ...(maxRuns === undefined ? {} : { maxRuns }) }])
  return found.map((line) => line.replace(/^job 0 \(a, ""\): /, ''))
}

const at = (hour: number): string => new Date(hour * HOUR).toISOString()
const range = (from: number, to: number) => ({ from: from * HOUR, to: to * HOUR })

test.each([
  ['all ran', { runs: [1, 2, 3] }, []],
  ['run or skipped', { runs: [1], skips: [range(2, 4)] }, []],
  ['one is missing', { runs: [1, 3] }, [`${at(2)} is missing: no run, no skip`]],
  ['one is double', { runs: [1, 2, 2, 3] }, [`${at(2)} ran 2 times`]],
  ['both', { runs: [1, 2, 3], skips: [range(2, 3)] }, [`${at(2)} ran, and is skipped too (paused)`]],
  ['twice', { runs: [1], skips: [range(2, 4), range(3, 4)] }, [`${at(3)} is skipped twice (paused, paused)`]],
  ['nobody asked', { runs: [1, 2, 3, 4] }, [`${at(4)} ran, and nobody asked for it`]],
  [
    'ought to run',
    { runs: [1, 2], skips: [range(3, 4)], verdict: 'run' as const },
    [`${at(3)} is skipped (paused), and ought to run`],
  ],
  ['used up', { runs: [1, 2], maxRuns: 2 }, []],
  ['beyond', { runs: [1, 2, 3], maxRuns: 2 }, [`${at(3)} runs though maxRuns is used up`]],
  [
    'miscounted',
    { runs: [1], skips: [{ ...range(2, 4), count: 3 }] },
    [`the skip (paused) from ${at(2)} to ${at(4)} says 3 times, and there are 2`],
  ],
])('the auditor sees it: %s', async (_, job, expected) => {
  expect(await findingsOf(job)).toEqual(expected)
})
