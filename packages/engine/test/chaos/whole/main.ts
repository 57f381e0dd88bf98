import { pause } from '../../../src/runtime/pause.ts'
import { seededRandom, systemRandom } from '../../../src/runtime/random.ts'
import { ReplicatedServer, urlOf } from '../../standby.ts'
import { keysOverLimit } from '../over-limit.ts'
import { PostgresServer } from '../postgres-server.ts'
import { Api } from './api.ts'
import { Changes } from './changes.ts'
import { planFaults } from './fault-plan.ts'
import { Faults } from './faults.ts'
import { Fleet } from './fleet.ts'
import { Load } from './load.ts'
import { type ChaosOptions, readChaosOptions, USAGE } from './options.ts'
import { Receiver } from './receiver.ts'
import { countAll, report } from './report.ts'
import { type Finding, judge, SCHEMA } from './verdict.ts'

const SETTLE_MS = 60_000
const LOOK_EVERY_MS = 100
const SAY_EVERY_MS = 10_000
/** A node that starts while PostgreSQL is away may give up; it is started again. */
const AWAY_MS = 15_000
const WAKES_UP_MS = 2_000
/** Recurring jobs end so long after the faults. */
const TICKS_LONGER_MS = 12_000

/**
 * The whole system under faults: three nodes, two libraries and four workers on one PostgreSQL, jobs of all kinds, changes
 * of jobs that are about to be due, and kills, stops and crashes by the seed. Then everything has a minute to end, and
 * what was acknowledged is compared with what was performed, as the receiver has seen it. The seed decides what is done
 * and when; how the processes interleave is up to the machine, so a seed narrows a failure down and may not repeat it.
 */
export async function main(words: string[], build: string): Promise<number> {
  const options = readChaosOptions(words, () => systemRandom.float())
  if (typeof options === 'string') {
    console.error(`${options}\n\n${USAGE}`)
    return 2
  }
  const stopped = new AbortController()
  const onSignal = () => {
    if (stopped.signal.aborted) process.exit(130)
    stopped.abort()
  }
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal)
  // The reader of the output has gone, as in `npm run chaos | head`: the processes must still be ended.
  process.stdout.on('error', () => stopped.abort())
  const server = options.failovers > 0 ? new ReplicatedServer() : new PostgresServer()
  const receiver = await Receiver.open()
  let fleet: Fleet | undefined
  // Whatever ends this process, no other is left: both signal all processes before they return.
  const killAll = () => {
    fleet?.kill()
    void server.kill()
  }
  process.once('exit', killAll)
  try {
    await server.start()
    const database = server instanceof ReplicatedServer ? urlOf(server.standby, server.primary) : urlOf(server)
    fleet = new Fleet(build, database, receiver)
    await fleet.start()
    const findings = await wreak({ server, receiver, fleet, options, signal: stopped.signal })
    return stopped.signal.aborted ? 130 : findings.length > 0 ? 1 : 0
  } finally {
    await fleet?.end()
    await server.remove()
    receiver.close()
    process.removeListener('exit', killAll)
  }
}

type Server = PostgresServer | ReplicatedServer

interface Stage {
  server: Server
  receiver: Receiver
  fleet: Fleet
  options: ChaosOptions
  signal: AbortSignal
}

async function wreak({ server, receiver, fleet, options, signal }: Stage): Promise<Finding[]> {
  const { seed, minutes, failovers } = options
  console.log(`chaos: seed ${seed}, ${minutes} minutes${failovers > 0 ? `, ${failovers} failovers` : ''}`)
  const durationMs = minutes * 60_000
  const query = server.query.bind(server)
  const api = new Api(fleet, seededRandom(seed + 1))
  const changes = new Changes(api, seededRandom(seed + 2))
  const load = new Load(api, seededRandom(seed + 3), changes, receiver.targetUrl)
  const faults = new Faults(fleet, server)
  const startAt = Math.ceil(Date.now() / 6_000) * 6_000 + 6_000
  await load.createRecurring(startAt, startAt + Math.ceil((durationMs + TICKS_LONGER_MS) / 6_000) * 6_000)

  const until = Date.now() + durationMs
  const watch = new Watch(server)
  const watching = watch.run(() =>
    console.log(
      `  ${Math.max(0, Math.round((until - Date.now()) / 1_000))} s left: ${load.oneOffs.size} created, ` +
        `${receiver.sightings.length} sightings, ${faults.happened.length} faults`,
    ),
  )
  await Promise.all([
    load.run(until, signal),
    changes.run(until, signal),
    faults.run(planFaults(seededRandom(seed), durationMs, failovers || undefined), signal),
  ])
  // A node that has just woken up does first what was sent to it while it was stopped.
  await pause(WAKES_UP_MS)
  await changes.resumeAll()
  const stuck = signal.aborted ? [] : await settle(server, signal)
  watch.stop()
  await watching
  if (signal.aborted) {
    console.log('chaos: stopped before the end')
    return []
  }

  const evidence = {
    oneOffs: load.oneOffs,
    recurring: load.recurring,
    triggered: changes.triggered,
    sightings: receiver.sightings,
    faults: faults.happened,
  }
  const findings: Finding[] = [
    ...stuck,
    ...(await judge(query, evidence)),
    ...[...watch.over].map((text) => ({ kind: 'over limit', jobId: null, text }) as const),
    ...[...api.odd, ...faults.slowStarts, ...ownEnds(fleet, faults)].map(
      (text) => ({ kind: 'odd', jobId: null, text }) as const,
    ),
  ]
  const counts = await countAll({ query, evidence, changes, looks: watch.looks })
  await report({ seed, findings, counts, sources: { query, calls: api.calls, ...evidence } })
  return findings
}

/** Waits until nothing is open any more, and names what still is after a minute. */
async function settle(server: Server, signal: AbortSignal): Promise<Finding[]> {
  const until = Date.now() + SETTLE_MS
  const open = () =>
    server.query<{ job_id: string; place: string }>(
      `select job_id, 'runs' as place from ${SCHEMA}.runs union all select job_id, 'timers' from ${SCHEMA}.timers
       union all select job_id, 'outbox' from ${SCHEMA}.outbox
       limit 1000`,
    )
  for (;;) {
    const left = await open()
    if (left.length === 0 || signal.aborted) return []
    if (Date.now() > until)
      return left.map(({ job_id, place }) => ({
        kind: 'stuck',
        jobId: job_id,
        text: `${job_id} is still in ${place} ${SETTLE_MS / 1_000} s after the last fault`,
      }))
    await pause(250)
  }
}

/** Looks at the leases of all keys, from outside, and says now and then how far the run is. */
class Watch {
  readonly over = new Set<string>()
  looks = 0
  readonly #server: Server
  #isOver = false

  constructor(server: Server) {
    this.#server = server
  }

  stop(): void {
    this.#isOver = true
  }

  async run(say: () => void): Promise<void> {
    let saidAt = Date.now()
    while (!this.#isOver) {
      // PostgreSQL may be away; what was held before that is looked at when it is back.
      const rows = await this.#server
        .query<{ name: string; max_running: number; leased: number }>(keysOverLimit(SCHEMA))
        .catch(() => [])
      for (const { name, max_running, leased } of rows) this.over.add(`${name}: ${leased} leases of ${max_running}`)
      this.looks++
      if (Date.now() - saidAt > SAY_EVERY_MS) {
        saidAt = Date.now()
        say()
      }
      await pause(LOOK_EVERY_MS)
    }
  }
}

/** Processes that ended although the harness did not kill them, and although PostgreSQL was there. */
function ownEnds(fleet: Fleet, { happened }: Faults): string[] {
  const crashes = happened.filter(({ kind }) => kind === 'crash')
  return [...fleet.members.values()]
    .flatMap((member) => member.ownEnds)
    .filter(({ at }) => !crashes.some(({ beganAt, overAt }) => at >= beganAt && at <= overAt + AWAY_MS))
    .map(({ member, at, how }) => `${member} ended by itself at ${new Date(at).toISOString()} with ${how}`)
}
