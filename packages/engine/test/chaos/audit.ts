import type pg from 'pg'
import type { Execution } from './ledger.ts'

export type Query = <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>

interface AttemptRow {
  run: string
  number: number
  outcome: number
  failure_class: number | null
  final: boolean
}

const SUCCEEDED = 1
const runOf = `job_id || '.' || (extract(epoch from nominal_at) * 1000)::bigint as run`

/**
 * Looks at a schema after everything in it has finished, and at what handlers wrote down themselves, and says what is
 * wrong, in words. It shares no code with the engine.
 */
export async function audit(
  query: Query,
  schema: string,
  executions: readonly Pick<Execution, 'job_id' | 'nominal_at' | 'attempt'>[],
): Promise<string[]> {
  const wrong: string[] = []
  const attempts = await query<AttemptRow>(
    `select ${runOf}, number, outcome, failure_class, final from ${schema}.attempts`,
  )
  const left = await query<{ run: string }>(`select ${runOf} from ${schema}.runs`)
  for (const { run } of left) wrong.push(`${run} is still in runs`)

  const byRun = new Map<string, AttemptRow[]>()
  for (const attempt of attempts) byRun.set(attempt.run, [...(byRun.get(attempt.run) ?? []), attempt])
  for (const [run, list] of byRun) {
    const finals = list.filter(({ final }) => final)
    if (finals.length !== 1) wrong.push(`${run} ended ${finals.length} times`)
    if (list.filter(({ outcome }) => outcome === SUCCEEDED).length > 1) wrong.push(`${run} succeeded more than once`)
    const numbers = list.map(({ number }) => number).sort((a, b) => a - b)
    if (new Set(numbers).size !== numbers.length) wrong.push(`${run} has an attempt number twice: ${numbers}`)
    if (finals[0] && finals[0].number !== numbers.at(-1)) wrong.push(`${run} went on after its end: ${numbers}`)
  }

  const performed = new Map<string, number>()
  for (const { job_id, nominal_at, attempt } of executions) {
    const fence = `${job_id}.${nominal_at.getTime()} ${attempt}`
    performed.set(fence, (performed.get(fence) ?? 0) + 1)
  }
  const recorded = new Map(attempts.map((attempt) => [`${attempt.run} ${attempt.number}`, attempt]))
  for (const [fence, times] of performed) {
    if (times > 1) wrong.push(`${fence} was performed ${times} times`)
    if (!recorded.has(fence)) wrong.push(`${fence} was performed, and history does not know it`)
  }
  for (const [fence, { outcome }] of recorded)
    if (outcome === SUCCEEDED && !performed.has(fence)) wrong.push(`${fence} succeeded, and nobody performed it`)
  return wrong
}

const TRIGGERED = 2

/**
 * Every nominal time of a job that recurs each `stepMs` has a run or is in one skip: from its first to its last one, or
 * those of `bounds`, of which the end is left out. Runs that were triggered stand beside the schedule.
 */
export async function auditRecurring(
  query: Query,
  schema: string,
  jobId: string,
  stepMs: number,
  bounds?: { startAt: number; endAt: number },
): Promise<string[]> {
  const wrong: string[] = []
  const runs = await query<{ at: string }>(
    `select distinct (extract(epoch from nominal_at) * 1000)::bigint as at
     from ${schema}.attempts where job_id = $1 and cause <> ${TRIGGERED}`,
    [jobId],
  )
  const skips = await query<{ from: string; to: string }>(
    `select (extract(epoch from from_nominal) * 1000)::bigint as from, (extract(epoch from to_nominal) * 1000)::bigint as to
     from ${schema}.skips where job_id = $1`,
    [jobId],
  )
  const decided = new Map<number, string[]>()
  const decide = (at: number, how: string) => decided.set(at, [...(decided.get(at) ?? []), how])
  for (const { at } of runs) decide(Number(at), 'run')
  for (const { from, to } of skips) for (let at = Number(from); at < Number(to); at += stepMs) decide(at, 'skip')
  const times = [...decided.keys()].sort((a, b) => a - b)
  const first = bounds?.startAt ?? times[0]
  const last = bounds === undefined ? times.at(-1) : bounds.endAt - stepMs
  if (first === undefined || last === undefined) return [`${jobId} never ran`]
  for (let at = first; at <= last; at += stepMs) {
    const how = decided.get(at) ?? []
    if (how.length !== 1) wrong.push(`${jobId} at ${at} (${(at - first) / stepMs}): ${how.join(' and ') || 'nothing'}`)
    decided.delete(at)
  }
  for (const at of decided.keys()) wrong.push(`${jobId} has a time that its schedule has not: ${at}`)
  return wrong
}
