import { CAUSE, nameOf, SKIP_REASON } from '../../src/job/states.ts'
import type { Instant } from '../../src/runtime/clock.ts'

/** What ought to have become of one nominal time. `either`: run or skipped, as long as it is one of them. */
export type Verdict = 'run' | 'skip' | 'either'

export interface Expected {
  jobId: string
  /** For the report: what the job says. */
  says: unknown
  /** By nominal time. */
  times: ReadonlyMap<Instant, Verdict>
  maxRuns?: number
}

interface Skip {
  from: Instant
  to: Instant
  reason: string
  count: number | null
}

interface Found {
  /** How often each nominal time was performed. */
  runs: Map<Instant, number>
  skips: Skip[]
}

const MAX_SHOWN = 30

type Query = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
/** What somebody triggered is beside the schedule. */
const RUNS = `select job_id, ${ms('nominal_at')} as nominal from attempts where final and cause <> ${CAUSE.trigger}
  union all select job_id, ${ms('nominal_at')} from runs where cause <> ${CAUSE.trigger}`
const SKIPS = `select job_id, ${ms('from_nominal')} as from, ${ms('to_nominal')} as to, reason, count from skips`

/**
 * Compares what the database says with what ought to have happened: each nominal time is accounted for by one run or one
 * skip, and nothing ran that nobody asked for. It knows nothing of how Belfry decides. Answers a line per finding.
 */
export async function audit(query: Query, jobs: readonly Expected[]): Promise<string[]> {
  const found = new Map<string, Found>(jobs.map(({ jobId }) => [jobId, { runs: new Map(), skips: [] }]))
  for (const { job_id: jobId, nominal } of await query(RUNS)) {
    const runs = found.get(String(jobId))?.runs
    runs?.set(Number(nominal), (runs.get(Number(nominal)) ?? 0) + 1)
  }
  for (const { job_id: jobId, from, to, reason, count } of await query(SKIPS)) {
    const skip = { from: Number(from), to: Number(to), reason: nameOf(SKIP_REASON, Number(reason)) ?? '?' }
    found.get(String(jobId))?.skips.push({ ...skip, count: count === null ? null : Number(count) })
  }
  const all = jobs.flatMap((job, index) =>
    findings(job, found.get(job.jobId) as Found).map(
      (finding) => `job ${index} (${job.jobId}, ${JSON.stringify(job.says)}): ${finding}`,
    ),
  )
  return all.length > MAX_SHOWN ? [...all.slice(0, MAX_SHOWN), `and ${all.length - MAX_SHOWN} more`] : all
}

function findings({ times, maxRuns }: Expected, { runs, skips }: Found): string[] {
  const lines: string[] = []
  const wanted = [...times.keys()].sort((a, b) => a - b)
  let ran = 0
  for (const at of wanted) {
    const count = runs.get(at) ?? 0
    const covering = skips.filter(({ from, to }) => from <= at && at < to)
    const isUsedUp = maxRuns !== undefined && ran >= maxRuns
    if (count > 0) ran++
    const complaint = isUsedUp
      ? count > 0 && 'runs though maxRuns is used up'
      : complaintAbout(count, covering, times.get(at) as Verdict)
    if (complaint) lines.push(`${new Date(at).toISOString()} ${complaint}`)
  }
  for (const at of runs.keys())
    if (!times.has(at)) lines.push(`${new Date(at).toISOString()} ran, and nobody asked for it`)
  for (const { from, to, reason, count } of skips) {
    const inside = wanted.filter((at) => from <= at && at < to).length
    if (count === null || count === inside) continue
    lines.push(
      `the skip (${reason}) from ${new Date(from).toISOString()} to ${new Date(to).toISOString()} says ${count} times, and there are ${inside}`,
    )
  }
  return lines
}

function complaintAbout(count: number, skips: readonly Skip[], verdict: Verdict): string | null {
  const reasons = skips.map(({ reason }) => reason).join(', ')
  if (count > 1) return `ran ${count} times`
  if (count + skips.length === 0) return 'is missing: no run, no skip'
  if (count === 1 && skips.length > 0) return `ran, and is skipped too (${reasons})`
  if (skips.length > 1) return `is skipped twice (${reasons})`
  if (verdict === 'run' && count === 0) return `is skipped (${reasons}), and ought to run`
  return verdict === 'skip' && count === 1 ? 'ran, and ought to be skipped' : null
}
