import type pg from 'pg'
import type { Answered, Execution, Ledger } from './chaos-ledger.ts'

type Query = <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>

/** How an attempt ended, by the numbers that stand in history. */
const OUTCOMES = ['', 'succeeded', 'failed', 'canceled', 'lost', 'released', 'snoozed', 'skipped']
export const LEASE_EXPIRED = 7

export interface Attempt {
  runId: string
  number: number
  outcome: string
  failureClass: number | null
  counted: boolean
  final: boolean
}

/** All of history. */
export async function readAttempts(query: Query): Promise<Attempt[]> {
  const rows = await query<{ job_id: string; at: string; number: number; outcome: number; failure_class: number }>(
    `select job_id, (extract(epoch from nominal_at) * 1000)::bigint as at, number, outcome, failure_class, counted, final
     from attempts order by job_id, number`,
  )
  return rows.map(({ job_id, at, outcome, failure_class, ...rest }) => ({
    ...(rest as unknown as Pick<Attempt, 'number' | 'counted' | 'final'>),
    runId: `${job_id}.${Number(at).toString(36)}`,
    outcome: OUTCOMES[outcome] as string,
    failureClass: failure_class,
  }))
}

const fenceOf = (runId: string, attempt: number) => `${runId} ${attempt}`

/**
 * Looks at history after everything has ended, at what handlers wrote down themselves and at what workers were answered,
 * and says in words what does not fit together. It shares no code with engine or client.
 */
export async function audit(query: Query, ledger: Ledger): Promise<string[]> {
  const attempts = await readAttempts(query)
  const executions = await ledger.executions()
  const answers = ledger.answers()
  const open = await query<{ job_id: string }>('select job_id from runs')
  return [
    ...open.map(({ job_id }) => `${job_id} has not ended`),
    ...endings(attempts),
    ...performances(attempts, executions, answers),
    ...agreement(attempts, answers),
    ...checkpoints(executions, answers),
  ]
}

function endings(attempts: readonly Attempt[]): string[] {
  const wrong: string[] = []
  for (const [runId, list] of groupBy(attempts, (attempt) => attempt.runId)) {
    const finals = list.filter(({ final }) => final)
    if (finals.length !== 1) wrong.push(`${runId} ended ${finals.length} times`)
    else if (finals[0] !== list.at(-1)) wrong.push(`${runId} went on after its end`)
    if (list.filter(({ outcome }) => outcome === 'succeeded').length > 1) wrong.push(`${runId} succeeded twice`)
    const numbers = list.map(({ number }) => number)
    // What went back before it began leaves its number unused. That it did not begin is seen with the performances.
    if (numbers.some((number, i) => number <= (numbers[i - 1] ?? 0))) wrong.push(`${runId} has the attempts ${numbers}`)
  }
  return wrong
}

function performances(
  attempts: readonly Attempt[],
  executions: readonly Execution[],
  answers: readonly Answered[],
): string[] {
  const wrong: string[] = []
  const history = new Set(attempts.map(({ runId, number }) => fenceOf(runId, number)))
  const performed = groupBy(executions, ({ run_id, attempt }) => fenceOf(run_id, attempt))
  for (const [fence, list] of performed) {
    if (list.length > 1) wrong.push(`${fence} was performed ${list.length} times`)
    if (!history.has(fence)) wrong.push(`${fence} was performed, and history does not know it`)
  }
  const fences = fencesOf(answers)
  const insisted = new Set(
    answers
      .flatMap(({ call, asked }) =>
        call === 'complete' ? (asked.results ?? []).filter((one) => 'result' in one && one.result === 'stale') : [],
      )
      .map(({ token }) => fences.get(token)),
  )
  for (const { runId, number, outcome } of attempts) {
    const fence = fenceOf(runId, number)
    if (outcome !== 'succeeded' || insisted.has(fence)) continue
    if (!performed.get(fence)?.[0]?.ended_at) wrong.push(`${fence} succeeded, and its handler did not get to its end`)
  }
  return wrong
}

/** What workers were told has happened, and what they were told has not. */
function agreement(attempts: readonly Attempt[], answers: readonly Answered[]): string[] {
  const wrong: string[] = []
  const fences = fencesOf(answers)
  const outcomes = new Map(attempts.map(({ runId, number, outcome }) => [fenceOf(runId, number), outcome]))
  const holders = new Map<string, string>()
  for (const { worker, call, asked, told } of answers) {
    for (const { runId, attempt } of told.runs ?? []) {
      const fence = fenceOf(runId, attempt)
      if ((holders.get(fence) ?? worker) !== worker) wrong.push(`${fence} was given to two workers`)
      holders.set(fence, worker)
    }
    if (call === 'heartbeat') continue
    const said = asked.results ?? (asked.leases ?? []).map(({ token, begun }) => ({ token, status: releaseOf(begun) }))
    const answered = told.results ?? told.leases ?? []
    if (said.length !== answered.length) wrong.push(`${said.length} items were given ${answered.length} answers`)
    said.forEach(({ token, status }, i) => {
      const fence = fences.get(token) ?? 'a token that nobody was given'
      const answer = answered[i]
      if (answer?.token !== token) wrong.push(`${fence} was answered in another place`)
      const isSo = status === 'given back' ? outcomes.get(fence) !== 'succeeded' : outcomes.get(fence) === status
      if (answer?.outcome === 'ok' && !isSo)
        wrong.push(`${fence} is ${outcomes.get(fence)}, and ${status} was accepted`)
      if (answer?.outcome === 'lease_lost' && isSo && status === 'succeeded')
        wrong.push(`${fence} is ${status}, and that was refused`)
      if (!['ok', 'lease_lost'].includes(answer?.outcome ?? '')) wrong.push(`${fence} was answered ${answer?.outcome}`)
    })
  }
  return wrong
}

/** What never began leaves nothing in history. */
const releaseOf = (begun: false | undefined): string => (begun === false ? 'given back' : 'released')

/** Each attempt finds what the one before it left last: what it was told is stored, or what it sent after that. */
function checkpoints(executions: readonly Execution[], answers: readonly Answered[]): string[] {
  const wrong: string[] = []
  const fences = fencesOf(answers)
  const insisted = new Set<string>()
  for (const { call, asked, told } of answers) {
    if (call !== 'heartbeat') continue
    asked.leases?.forEach(({ token, checkpoint }, i) => {
      const isTaken = ['ok', 'cancel_requested'].includes(told.leases?.[i]?.outcome ?? '')
      if (isTaken && (checkpoint as { step?: number } | undefined)?.step === 99) insisted.add(fences.get(token) ?? '')
    })
  }
  for (const [runId, list] of groupBy(executions, ({ run_id }) => run_id)) {
    let allowed = [text(null)]
    for (const { attempt, got, leaving, left_step } of list.toSorted((a, b) => a.attempt - b.attempt)) {
      if (!allowed.includes(text(got)))
        wrong.push(`${fenceOf(runId, attempt)} found ${text(got)} instead of ${allowed.join(' or ')}`)
      const first = left_step ?? 1
      const sent = Array.from({ length: Math.max(0, (leaving ?? 0) - first + 1) }, (_, i) => first + i)
      if (insisted.has(fenceOf(runId, attempt))) sent.push(99)
      allowed = [...(left_step === null ? [text(got)] : []), ...sent.map((step) => text({ attempt, step }))]
    }
  }
  return wrong
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

const text = (value: unknown) => JSON.stringify(value)

/** Which attempt a token is for. */
export function fencesOf(answers: readonly Answered[]): Map<string, string> {
  const leased = answers.flatMap(({ told }) => told.runs ?? [])
  return new Map(leased.map(({ token, runId, attempt }) => [token, fenceOf(runId, attempt)]))
}
