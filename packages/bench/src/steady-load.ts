import type pg from 'pg'
import { readNumber, waitUntilReached } from './database.ts'
import { costs, startMeter } from './meter.ts'
import { percentile } from './statistics.ts'
import type { Measurement, Setting } from './workload.ts'

/**
 * What users pay for: not how much a library can do at most, but what an ordinary flow of work costs. Each subject
 * creates its jobs one by one and handles them in the same process, as an application does. Creates do not wait for
 * each other, so a subject that is too slow is not spared any of the load.
 */
const WARM_UP_MS = 10_000
const WATCHED_MS = { quick: 20_000, full: 60_000 }
const TICK_MS = 1
const DEADLINE_MS = 60_000
const LEAST_SHARE = 0.9

/** The runs that have begun, and how late each of them was. */
export class Starts {
  readonly #calledAt: number[] = []
  readonly #lagsMs: number[] = []

  get counted(): number {
    return this.#lagsMs.length
  }

  /** A job is being created that is to start at once. */
  called(index: number): void {
    this.#calledAt[index] = performance.now()
  }

  begun(index: number): void {
    this.late(performance.now() - (this.#calledAt[index] ?? Number.NaN))
  }

  late(lagMs: number): void {
    this.#lagsMs.push(lagMs)
  }

  lagsMs(from: number, to: number): number[] {
    return this.#lagsMs.slice(from, to)
  }
}

export interface Load {
  setting: Setting
  /** Belongs to the bench: it watches, and does none of the work. */
  client: pg.Client
  runsPerSecond: number
  /** One-offs; what else begins fires by itself. */
  createsPerSecond: number
  create(index: number): Promise<unknown>
  oneOffs: Starts
  recurring?: Starts
  /** Fails unless the subject's own records say that all these runs are done. */
  check(begun: number): Promise<void>
}

/** Watches the load for some time, then ends it and checks that nothing was lost. */
export async function measureSteady(name: string, load: Load): Promise<Measurement[]> {
  const creator = new Creator(load)
  try {
    return await Promise.race([creator.failed, watch(name, load, creator)])
  } finally {
    creator.end()
  }
}

async function watch(name: string, load: Load, creator: Creator): Promise<Measurement[]> {
  const { client, runsPerSecond, oneOffs, recurring } = load
  const kinds = [
    { title: `${name}_lag`, starts: oneOffs },
    ...(recurring ? [{ title: `${name}_recurring_lag`, starts: recurring }] : []),
  ]
  const countAll = () => kinds.map(({ starts }) => starts.counted)
  await pause(WARM_UP_MS)
  const vacuumed = await countVacuums(client)
  const meter = await startMeter(client)
  const startedAt = performance.now()
  const from = countAll()
  await pause(WATCHED_MS[load.setting.pace])
  const to = countAll()
  const seconds = (performance.now() - startedAt) / 1_000
  const spent = await meter()
  const vacuums = (await countVacuums(client)) - vacuumed
  const runs = sum(to) - sum(from)
  // What a run costs where runs pile up is another question.
  if (runs < LEAST_SHARE * seconds * runsPerSecond)
    throw new Error(`it did not keep up: ${runs} runs began in ${seconds.toFixed(1)} s, not ${runsPerSecond} a second`)
  creator.end()
  const created = await creator.created()
  const begun = async () => oneOffs.counted
  await waitUntilReached(begun, created, { what: 'steady load, one-offs begun', deadlineMs: DEADLINE_MS })
  await load.check(created)
  return [
    { name, value: runs / seconds, unit: 'runs/s' },
    ...costs(name, spent, runs),
    ...(spent.postgresUs === null
      ? []
      : [{ name: `${name}_cpu`, value: (spent.nodeUs + spent.postgresUs) / runs, unit: 'µs/run' }]),
    ...kinds.flatMap(({ title, starts }, kind) => lags(title, starts.lagsMs(from[kind] ?? 0, to[kind] ?? 0))),
    { name: `${name}_vacuums`, value: vacuums, unit: 'tables' },
  ]
}

/** Creates as often as is due by the clock: it makes up for a pause of the process. */
class Creator {
  readonly #calls: Promise<unknown>[] = []
  readonly #timer: NodeJS.Timeout
  /** Settles only when a create fails. */
  readonly failed: Promise<never>

  constructor({ createsPerSecond, create, oneOffs }: Load) {
    let fail: (error: unknown) => void = () => {}
    this.failed = new Promise((_, reject) => {
      fail = reject
    })
    const startedAt = performance.now()
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) / 1_000) * createsPerSecond
      while (this.#calls.length < due) {
        oneOffs.called(this.#calls.length)
        this.#calls.push(create(this.#calls.length).catch(fail))
      }
    }, TICK_MS)
  }

  end(): void {
    clearInterval(this.#timer)
  }

  /** How many were created, once all are. */
  async created(): Promise<number> {
    await Promise.all(this.#calls)
    return this.#calls.length
  }
}

function lags(title: string, lagsMs: number[]): Measurement[] {
  return [50, 95, 99].map((share) => ({
    name: `${title}_p${share}`,
    value: percentile(lagsMs, share / 100),
    unit: 'ms',
  }))
}

/** How often autovacuum has cleaned a table of this database: what a run left behind is paid for later. */
function countVacuums(client: pg.Client): Promise<number> {
  return readNumber(client, 'select coalesce(sum(autovacuum_count), 0) from pg_stat_all_tables')
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const pause = (ms: number): Promise<void> => new Promise((wake) => setTimeout(wake, ms))
