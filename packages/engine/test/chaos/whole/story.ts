import type { Query } from '../audit.ts'
import type { Call } from './api.ts'
import type { Happened } from './faults.ts'
import type { Sighting } from './receiver.ts'
import { jobOf, SCHEMA } from './verdict.ts'

export interface Sources {
  query: Query
  calls: ReadonlyMap<string, readonly Call[]>
  sightings: readonly Sighting[]
  faults: readonly Happened[]
}

interface Line {
  at: number
  text: string
}

const MOST_LINES = 120
/** Of a long story the begin and, mostly, the end are shown. */
const FIRST_LINES = 30
/** Faults count as near from so long before the first line of a job to its last one. */
const NEAR_MS = 5_000

/** One job from all sources, in the order of time. */
export async function tell(jobId: string, sources: Sources): Promise<string> {
  const calls = (sources.calls.get(jobId) ?? []).flatMap(({ what, node, sentAt, answeredAt, status }) => [
    { at: sentAt, text: `call      ${node} ${what}` },
    { at: answeredAt, text: `answer    ${node} ${status ?? 'none'} to ${what.slice(0, 80)}` },
  ])
  const seen = sources.sightings
    .filter(({ runId }) => jobOf(runId) === jobId)
    .map(({ what, runId, attempt, by, at }) => ({
      at,
      text: `receiver  ${runId} attempt ${attempt} ${what}, by ${by}`,
    }))
  const kept = await fromDatabase(jobId, sources.query)
  const own = [...calls, ...seen, ...kept].sort((one, other) => one.at - other.at)
  const [first, last] = [own[0]?.at ?? 0, own.at(-1)?.at ?? 0]
  const faults = sources.faults
    .filter(({ beganAt, overAt }) => overAt >= first - NEAR_MS && beganAt <= last)
    .flatMap((fault) => {
      const what = fault.kind === 'crash' ? 'PostgreSQL crashes' : `${fault.kind} ${fault.member}`
      return [
        { at: fault.beganAt, text: `fault     ${what}` },
        { at: fault.overAt, text: `fault     over: ${what}` },
      ]
    })
  const lines = [...own, ...faults].sort((one, other) => one.at - other.at)
  const shown = lines.map(({ at, text }) => `    ${timeOf(at)}  ${text}`)
  const left = shown.length - MOST_LINES
  if (left > 0) shown.splice(FIRST_LINES, left, `    … ${left} lines left out`)
  return [`  ${jobId}`, ...shown].join('\n')
}

const timeOf = (at: number): string => (Number.isFinite(at) ? new Date(at).toISOString().slice(11, 23) : 'never       ')

async function fromDatabase(jobId: string, query: Query): Promise<Line[]> {
  const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
  const texts = [
    `select ${ms('finished_at')} as at, format('attempt   %s of %s leased %s started %s by %s: outcome %s failure %s cause %s%s %s',
       number, to_char(nominal_at at time zone 'UTC', 'HH24:MI:SS.MS'), to_char(leased_at at time zone 'UTC', 'HH24:MI:SS.MS'),
       to_char(started_at at time zone 'UTC', 'HH24:MI:SS.MS'), holder, outcome, failure_class, cause,
       case when final then ' final' end, left(error, 200)) as text
     from ${SCHEMA}.attempts where job_id = $1`,
    `select ${ms('changed_at')} as at, format('change    %s by %s: %s', action, actor, left(after::text, 200)) as text
     from ${SCHEMA}.job_changes where subject_id = $1::uuid::text`,
    `select ${ms('decided_at')} as at, format('skip      %s to %s, reason %s', from_nominal, to_nominal, reason) as text
     from ${SCHEMA}.skips where job_id = $1`,
    `select ${ms('now()')} as at, format('still     timer due %s nominal %s version %s', due_at, nominal_at, version) as text
     from ${SCHEMA}.timers where job_id = $1`,
    `select ${ms('now()')} as at, format('still     run of %s state %s attempt %s due %s lease until %s holder %s limit key %s',
       nominal_at, state, attempt, due_at, lease_until, holder, limit_key) as text
     from ${SCHEMA}.runs where job_id = $1`,
  ]
  const lines: Line[] = []
  for (const text of texts) lines.push(...(await query<Line>(`${text} order by 1 limit ${MOST_LINES}`, [jobId])))
  return lines
}
