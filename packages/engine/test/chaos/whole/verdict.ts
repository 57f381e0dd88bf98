import { audit, auditRecurring, type Query } from '../audit.ts'
import type { Happened } from './faults.ts'
import { nodeOf } from './fleet.ts'
import type { Acknowledged, Recurring } from './load.ts'
import type { Sighting } from './receiver.ts'

export type Kind = 'lost' | 'doubled' | 'stuck' | 'over limit' | 'odd'

/** Something that must not be. */
export interface Finding {
  kind: Kind
  jobId: string | null
  text: string
}

/** What was acknowledged and what was seen, outside of Belfry. */
export interface Evidence {
  oneOffs: ReadonlyMap<string, Acknowledged>
  recurring: readonly Recurring[]
  triggered: ReadonlySet<string>
  sightings: readonly Sighting[]
  faults: readonly Happened[]
}

export const SCHEMA = 'belfry'
const OUTCOME = { succeeded: 1, lost: 4 }

export const jobOf = (runId: string): string => runId.slice(0, 36)
export const nominalOf = (runId: string): Date => new Date(Number.parseInt(runId.slice(37), 36))

/** Everything that is wrong once all should have ended. */
export async function judge(query: Query, evidence: Evidence): Promise<Finding[]> {
  return [
    ...(await judgeHistory(query, evidence)),
    ...(await judgeOneOffs(query, evidence)),
    ...judgeOnce(evidence),
    ...judgeOverlaps(evidence),
  ]
}

async function judgeHistory(query: Query, { sightings, recurring }: Evidence): Promise<Finding[]> {
  const executions = sightings
    .filter(({ what }) => what === 'began')
    .map(({ runId, attempt }) => ({ job_id: jobOf(runId), nominal_at: nominalOf(runId), attempt }))
  const findings = (await audit(query, SCHEMA, executions)).map((text) => ({
    kind: kindOf(text),
    jobId: jobOf(text),
    text: withRunId(text),
  }))
  for (const { jobId, stepMs, startAt, endAt } of recurring) {
    const texts = await auditRecurring(query, SCHEMA, jobId, stepMs, { startAt, endAt })
    findings.push(...texts.map((text) => ({ kind: / and /.test(text) ? 'doubled' : 'lost', jobId, text }) as const))
  }
  return findings
}

/** The auditor speaks in words; what it says of an attempt that is there too often is a double. */
export function kindOf(text: string): Kind {
  if (/still in runs/.test(text)) return 'stuck'
  if (/nobody performed|history does not know|ended 0 times/.test(text)) return 'lost'
  return 'doubled'
}

/** The auditor names a run by its nominal time in milliseconds, Belfry's API in base 36. */
function withRunId(text: string): string {
  return text.replace(/^(.{36})\.(\d+)/, (_, jobId: string, at: string) => `${jobId}.${Number(at).toString(36)}`)
}

interface Ended {
  job_id: string
  runs: number
  outcomes: number[]
}

async function judgeOneOffs(query: Query, { oneOffs, triggered, sightings }: Evidence): Promise<Finding[]> {
  const rows = await query<Ended>(
    `select job_id, count(*) filter (where outcome <> 7)::int as runs, array_agg(outcome::int) as outcomes
     from ${SCHEMA}.attempts where final group by job_id`,
  )
  const ended = new Map(rows.map((row) => [row.job_id, row]))
  const performed = new Set(sightings.map(({ runId }) => jobOf(runId)))
  const findings: Finding[] = []
  const find = (kind: Kind, jobId: string, text: string) => findings.push({ kind, jobId, text: `${jobId} ${text}` })
  for (const { jobId, atMostOnce } of oneOffs.values()) {
    const end = ended.get(jobId)
    const isLost = atMostOnce && end?.outcomes.includes(OUTCOME.lost)
    if (!end) find('lost', jobId, 'was acknowledged and never ended')
    else if (!end.outcomes.includes(OUTCOME.succeeded) && !isLost)
      find('lost', jobId, `was acknowledged and ended as ${end.outcomes}`)
    if (!performed.has(jobId) && !isLost) find('lost', jobId, 'was acknowledged and nobody performed it')
    if (end && end.runs > 1 && !triggered.has(jobId)) find('doubled', jobId, `is to run once and has ${end.runs} runs`)
  }
  return findings
}

/** An attempt of `at_most_once` is never followed by another one that is performed. */
export function judgeOnce({
  oneOffs,
  recurring,
  sightings,
}: Pick<Evidence, 'oneOffs' | 'recurring' | 'sightings'>): Finding[] {
  const once = new Set([...oneOffs.values(), ...recurring].filter((job) => job.atMostOnce).map(({ jobId }) => jobId))
  const times = new Map<string, number>()
  for (const { what, runId } of sightings)
    if (what === 'began' && once.has(jobOf(runId))) times.set(runId, (times.get(runId) ?? 0) + 1)
  return [...times].flatMap(([runId, count]) =>
    count > 1
      ? [
          {
            kind: 'doubled',
            jobId: jobOf(runId),
            text: `${runId} is at_most_once and was begun ${count} times`,
          } as const,
        ]
      : [],
  )
}

interface Span {
  runId: string
  attempt: number
  from: number
  to: number
}

/**
 * More attempts of a key at work at a time than its limit allows. Only attempts whose performer could renew its lease
 * all the time count: a process that was stopped goes on for a moment with a lease that is over, and cannot know.
 */
export function judgeOverlaps({
  oneOffs,
  sightings,
  faults,
}: Pick<Evidence, 'oneOffs' | 'sightings' | 'faults'>): Finding[] {
  const findings: Finding[] = []
  for (const [key, { limit, spans }] of spansByKey(oneOffs, sightings, faults)) {
    const ends: Span[] = []
    for (const span of spans.sort((one, other) => one.from - other.from)) {
      const open = ends.filter(({ to }) => to > span.from)
      if (open.length >= limit) {
        const names = [...open, span].map(({ runId, attempt }) => `${runId} ${attempt}`).join(', ')
        findings.push({ kind: 'over limit', jobId: jobOf(span.runId), text: `${key} at work at a time: ${names}` })
      }
      ends.splice(0, ends.length, ...open, span)
    }
  }
  return findings
}

function spansByKey(
  oneOffs: Evidence['oneOffs'],
  sightings: readonly Sighting[],
  faults: readonly Happened[],
): Map<string, { limit: number; spans: Span[] }> {
  const byKey = new Map<string, { limit: number; spans: Span[] }>()
  const began = new Map<string, Sighting>()
  for (const sighting of sightings) {
    const { what, runId, attempt, by, at } = sighting
    const key = oneOffs.get(jobOf(runId))?.key
    if (!key) continue
    const fence = `${runId} ${attempt} ${by}`
    const begin = began.get(fence)
    if (what === 'began') began.set(fence, sighting)
    else if (begin && !isDisturbed(by, begin.at, at, faults)) {
      const entry = byKey.get(key.key) ?? { limit: key.limit, spans: [] }
      entry.spans.push({ runId, attempt, from: begin.at, to: at })
      byKey.set(key.key, entry)
    }
  }
  return byKey
}

/** Between the claim and the begin lies as much, and a process that was stopped needs a moment to notice. */
const CLAIMED_BEFORE_MS = 5_000
const NOTICES_MS = 2_000

function isDisturbed(by: string, from: number, to: number, faults: readonly Happened[]): boolean {
  return faults.some((fault) => {
    const isNear = fault.beganAt <= to && fault.overAt + NOTICES_MS >= from - CLAIMED_BEFORE_MS
    if (!isNear || fault.kind === 'crash') return isNear
    if (by === 'http') return !fault.member.startsWith('worker-')
    return fault.member === by || (by.startsWith('worker-') && fault.member === nodeOf(by))
  })
}
