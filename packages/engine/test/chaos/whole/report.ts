import type { Query } from '../audit.ts'
import type { Changes } from './changes.ts'
import { type Sources, tell } from './story.ts'
import { type Evidence, type Finding, SCHEMA } from './verdict.ts'

type Counts = [what: string, count: number][]

/** Of each kind. */
const MOST_FINDINGS = 15
const MOST_STORIES = 3

interface Tables {
  attempts: number
  runs: number
  succeeded: number
  lost: number
  expired: number
  skips: number
  letters: number
}

export async function countAll(from: {
  query: Query
  evidence: Evidence
  changes: Changes
  looks: number
}): Promise<Counts> {
  const { oneOffs, recurring, sightings, faults } = from.evidence
  const [tables] = await from.query<{ [Name in keyof Tables]: number }>(
    `select count(*)::int as attempts, count(*) filter (where final)::int as runs,
       count(*) filter (where final and outcome = 1)::int as succeeded, count(*) filter (where final and outcome = 4)::int as lost,
       count(*) filter (where failure_class = 7)::int as expired,
       (select count(*)::int from ${SCHEMA}.skips) as skips, (select count(*)::int from ${SCHEMA}.dead_letters) as letters
     from ${SCHEMA}.attempts`,
  )
  const faultsOf = (kind: string) => faults.filter((fault) => fault.kind === kind).length
  const began = sightings.filter(({ what }) => what === 'began')
  const changed = Object.entries(from.changes.counts)
  return [
    ['created: one-offs acknowledged', oneOffs.size],
    ['created: recurring', recurring.length],
    ['performed: attempts that the receiver saw begin', began.length],
    ['performed: by HTTP calls', began.filter(({ by }) => by === 'http').length],
    ['performed: by libraries', began.filter(({ by }) => by.startsWith('library')).length],
    ['performed: by workers', began.filter(({ by }) => by.startsWith('worker')).length],
    ['history: attempts', tables?.attempts ?? 0],
    ['history: runs that ended', tables?.runs ?? 0],
    ['history: succeeded', tables?.succeeded ?? 0],
    ['history: lost, all at_most_once', tables?.lost ?? 0],
    ['history: leases that expired', tables?.expired ?? 0],
    ['history: ranges of skips', tables?.skips ?? 0],
    ['history: dead letters, with the lost ones', tables?.letters ?? 0],
    ['kills', faultsOf('kill')],
    ['stops', faultsOf('stop')],
    ['crashes of PostgreSQL', faultsOf('crash')],
    ...changed.map(([kind, { done }]): Counts[number] => [`changes: ${kind}`, done]),
    ['changes: refused', changed.reduce((sum, [, { refused }]) => sum + refused, 0)],
    ['changes: without an answer', changed.reduce((sum, [, { unanswered }]) => sum + unanswered, 0)],
    ['looks at the leases of keys', from.looks],
  ]
}

/** The counts, and of what is wrong as much as a reader can take in: the findings, then the stories of the first jobs. */
export async function report(from: {
  seed: number
  findings: readonly Finding[]
  counts: Counts
  sources: Sources
}): Promise<void> {
  const { seed, findings, counts, sources } = from
  console.log('')
  for (const [what, count] of counts) console.log(`  ${what.padEnd(50)}${String(count).padStart(8)}`)
  console.log('')
  if (findings.length === 0) {
    console.log(`chaos: seed ${seed}: nothing lost, nothing doubled, nothing stuck, no limit exceeded`)
    return
  }
  const byKind = byKindOf(findings)
  const summary = [...byKind].map(([kind, list]) => `${list.length} ${kind}`).join(', ')
  console.log(`chaos: FAILED with seed ${seed}: ${summary}`)
  for (const [kind, list] of byKind) {
    for (const { text } of list.slice(0, MOST_FINDINGS)) console.log(`  ${kind.padEnd(11)}${text}`)
    if (list.length > MOST_FINDINGS) console.log(`  ${kind.padEnd(11)}… and ${list.length - MOST_FINDINGS} more`)
  }
  const jobs = new Set([...byKind.values()].flatMap((list) => firstJobs(list)))
  for (const jobId of jobs) console.log(`\n${await tell(jobId, sources)}`)
}

function firstJobs(findings: readonly Finding[]): string[] {
  const ids = new Set(findings.flatMap(({ jobId }) => (jobId === null ? [] : [jobId])))
  return [...ids].slice(0, MOST_STORIES)
}

function byKindOf(findings: readonly Finding[]): Map<string, Finding[]> {
  const byKind = new Map<string, Finding[]>()
  for (const finding of findings) byKind.set(finding.kind, [...(byKind.get(finding.kind) ?? []), finding])
  return byKind
}
