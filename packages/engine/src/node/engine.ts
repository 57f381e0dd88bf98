import { Expirer } from '../attempts/expirer.sql.ts'
import { FaultyClaims } from '../attempts/faulty-claims.ts'
import { Finisher } from '../attempts/finisher.ts'
import { Reaper } from '../attempts/reaper.sql.ts'
import { RunChanges } from '../attempts/run-changes.sql.ts'
import { Backfiller } from '../backfill/backfiller.ts'
import { Backfills } from '../backfill/backfills.ts'
import { Deliverer } from '../dependencies/deliverer.ts'
import type { ReopenDeps } from '../dependencies/reopen-children.ts'
import { Beginnings } from '../executors/beginnings.ts'
import type { Perform } from '../executors/handlers/handler-pool.ts'
import { Handlers } from '../executors/handlers/handlers.ts'
import { type Judge, judge } from '../executors/handlers/judge.ts'
import { Keeper } from '../executors/handlers/keeper.ts'
import { type Handler, performHandler } from '../executors/handlers/perform-handler.ts'
import { HttpQueues } from '../executors/http/http-queues.sql.ts'
import { judgeHttp } from '../executors/http/judge-http.ts'
import { RemoteWorkers } from '../executors/remote/remote-workers.ts'
import { dropExpired } from '../history/drop-expired.ts'
import { Partitioner } from '../history/partitioner.ts'
import { Intake } from '../intake/intake.ts'
import { JobChanges } from '../intake/job-changes.ts'
import { planJob } from '../intake/plan-job.sql.ts'
import { retakeUnique } from '../intake/retake-unique.ts'
import { queueKindOf } from '../job/definition.ts'
import { newJobId, shardOfKey } from '../job/ids.ts'
import { Definitions } from '../leases/definitions.sql.ts'
import { Forecasts } from '../lookup/forecasts.ts'
import { PromoteAlone } from '../promotion/promote-alone.ts'
import { Promoter } from '../promotion/promoter.ts'
import { Replanning } from '../promotion/replanning.ts'
import { Schedules } from '../promotion/schedules.sql.ts'
import { Exchange } from '../ready/exchange.ts'
import { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import { Notifier } from '../shards/notifier.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import { type Asked, Pulse } from '../shards/pulse.ts'
import { Registry } from '../shards/registry.sql.ts'
import { ALL_ROLES, type Role } from '../shards/roles.ts'
import { type Listener, Wakeups } from '../shards/wakeups.sql.ts'
import type { Database } from '../store/database.ts'
import { Calendars } from '../tenants/calendars.sql.ts'
import { Quotas } from '../tenants/quotas.sql.ts'
import { TimerReader } from '../timers/timer-reader.ts'
import { Admin } from './admin.ts'
import { type Agent, Agents } from './agents.ts'
import type { EngineDeps } from './engine-deps.ts'
import { HttpSide } from './http-side.ts'
import { Known } from './known.ts'
import { purgeForgotten } from './purge-forgotten.ts'
import { Waking } from './waking.ts'

/** Ends are written, and due timers promoted, by two statements at once, so that both sides keep their cores busy. */
const FINISH_LANES = 2
const PROMOTE_LANES = 2
const MAX_BATCH = 1_000
/** Runs of one HTTP queue at a time; the calls among them are bounded by the slots of their origins. */
const HTTP_CONCURRENCY = 1_000
const KEY_BYTES = 32
const LOCAL_URL = 'http://127.0.0.1:8080'
/** After the grace time, what has ended still has this long to reach the database. */
const FLUSH_MS = 5_000

/** One node: what it is made of, and its life. Nodes know each other only through the database. */
export class Engine {
  readonly db: Database
  readonly clock: Clock
  readonly nodeId: string
  readonly shards: number
  readonly historyDays: number
  readonly wakeups = new Wakeups()
  readonly turns = new Turns()
  // What it knows.
  readonly known: Known
  readonly registry: Registry
  readonly schedules: Schedules
  readonly calendars: Calendars
  readonly admin: Admin
  readonly quotas: Quotas
  // What callers ask for.
  readonly intake: Intake
  readonly jobChanges: JobChanges
  readonly runChanges: RunChanges
  /** The same for calls that change many. */
  readonly bulkChanges: RunChanges
  readonly backfills: Backfills
  readonly forecasts: Forecasts
  // Runs come.
  readonly reader: TimerReader
  readonly promoter: Promoter
  readonly replanning: Replanning
  readonly backfiller: Backfiller
  readonly waking: Waking
  readonly deliverer: Deliverer
  // Runs are performed, and end.
  readonly handlers: Handlers
  readonly http: HttpSide
  readonly httpQueues: HttpQueues
  /** Runs that workers elsewhere perform. */
  readonly remote: RemoteWorkers
  readonly keeper: Keeper
  readonly finisher: Finisher
  readonly reaper: Reaper
  readonly expirer: Expirer
  readonly partitioner: Partitioner
  // What keeps it together.
  readonly pulse: Pulse
  readonly #notifier: Notifier
  readonly #promoters: readonly Agent[]
  readonly #agents: Agents
  /** These go on until everything else has ended: leases are kept, and the node is seen. */
  readonly #heart: Agents
  readonly beginnings: Beginnings
  readonly #exchange = new Exchange(this.turns)
  readonly #stopping = new AbortController()
  readonly #random: Random
  #isRunning = false

  constructor(deps: EngineDeps) {
    const { db, clock, random, logger, shards, leaseMs, cancelGraceMs, historyDays, roles = ALL_ROLES } = deps
    const { wakeups, turns } = this
    const stopping = this.#stopping.signal
    const vaultKey = deps.vaultKey ?? random.bytes(KEY_BYTES)
    this.db = db
    this.clock = clock
    this.shards = shards
    this.historyDays = historyDays
    this.#random = random
    this.nodeId = newJobId(0, clock.now(), random)

    const onOpen = (queueId: number) => {
      this.handlers.wake(queueId)
      this.remote.calls.wake(queueId)
    }
    this.known = new Known({ db, clock, onOpen, onNewLimit: () => this.pulse.sweepNext() })
    const { paused, limited, room, queueSettings } = this.known
    this.registry = new Registry(db.aside, clock)
    this.schedules = new Schedules(db.aside)
    this.calendars = new Calendars({ db, clock })
    this.admin = new Admin({ db, clock, random, refresh: () => this.refresh() })
    this.quotas = new Quotas({ db, clock, tenants: this.admin.tenants })
    const { registry, schedules, calendars } = this
    const definitions = new Definitions(db.vital)

    const reopening: ReopenDeps = {
      retakeUnique: (tx, jobId) => retakeUnique(tx, jobId, { shards, now: clock.now() }),
      queueIdOf: (tenantId, definition) => registry.queueId(tenantId, definition.queue, queueKindOf(definition)),
    }
    this.intake = new Intake({
      ...{ db, clock, random, shards, registry, schedules, calendars, turns, wakeups, room, queueSettings },
      ...{ cancelGraceMs, historyDays },
    })
    this.jobChanges = new JobChanges({ db, clock, shards, schedules, calendars, turns, wakeups, cancelGraceMs })
    const ofRuns = { ...reopening, clock, turns, wakeups, cancelGraceMs }
    this.runChanges = new RunChanges({ ...ofRuns, db: db.callers })
    this.bulkChanges = new RunChanges({ ...ofRuns, db: db.bulk })
    this.backfills = new Backfills({ db, clock, random, schedules, wakeups, cancelGraceMs, historyDays })
    this.forecasts = new Forecasts({ clock, schedules, shards })

    this.partitioner = new Partitioner({ db, clock, logger, daysAhead: deps.daysAhead })
    const ensurePartitions = () => this.partitioner.ensure()
    db.onMissingPartition(ensurePartitions)
    this.finisher = new Finisher(
      { db: db.vital, logger, wakeups, limited, ensurePartitions },
      { lanes: FINISH_LANES, maxBatch: MAX_BATCH },
    )
    const { finisher } = this
    const faulty = new FaultyClaims({ clock, logger })
    const claims = { db: db.vital, clock, random, shards, limited, faulty, wakeups, cancelGraceMs }
    const ends = { logger, finisher, definitions, paused, turns, stopping }
    this.beginnings = new Beginnings({ db: db.vital, clock, logger, stopping })
    this.handlers = new Handlers({
      ...claims,
      ...ends,
      beginnings: this.beginnings,
      leaseMs,
      onRoom: () => this.#hasRoom(),
    })
    this.remote = new RemoteWorkers({
      ...{ ...claims, ...ends, beginnings: this.beginnings, vaultKey },
      onNewWorker: () => this.#agents.wake(this.remote),
    })
    this.http = new HttpSide({
      ...{ db, clock, random, logger, shards, finisher, definitions, wakeups, stopping, paused, vaultKey },
      allowPrivateTargets: deps.allowPrivateTargets ?? false,
      publicUrl: () => deps.publicUrl?.() ?? LOCAL_URL,
      liveNodes: () => this.known.liveNodes,
      payloadLimit: (tenantId) => this.quotas.payloadLimit(tenantId),
      beginnings: this.beginnings,
      settings: deps.http ?? {},
    })
    this.httpQueues = new HttpQueues({
      db,
      serves: (queueId) => this.handlers.serves(queueId),
      serve: (queueId) => this.#serve(queueId, this.http.executor.perform, HTTP_CONCURRENCY, judgeHttp),
    })
    this.keeper = new Keeper({
      ...{ db: db.vital, clock, logger, leaseMs },
      pools: () => this.handlers.pools,
      giveBack: (leases) => this.handlers.giveBack(leases),
    })
    this.reaper = new Reaper({ db, logger, random, finisher, definitions, turns, wakeups })
    this.expirer = new Expirer({ db, clock, wakeups })

    this.reader = new TimerReader({ db: db.vital, clock, onRead: () => this.#agents.wake(...this.#promoters) })
    const { intake, reader, handlers } = this
    const alone = new PromoteAlone({
      ...{ db: db.vital, clock, schedules, turns, wakeups, cancelGraceMs },
      plan: (tx, timer) => planJob(tx, { clock, intake }, timer),
    })
    this.promoter = new Promoter({
      db: db.vital,
      ...{ clock, random, logger, reader, schedules, definitions, turns, wakeups, alone, leaseMs, stopping },
      direct: handlers,
      onAlone: () => this.#agents.wake(promoterOfSingles),
    })
    const { promoter } = this
    this.#promoters = Array.from({ length: PROMOTE_LANES }, (_, i) => ({
      name: `promoter ${i + 1}`,
      role: 'promoter',
      runOnce: () => promoter.runBatch(),
    }))
    const promoterOfSingles: Agent = {
      name: 'promoter of single jobs',
      role: 'promoter',
      runOnce: () => promoter.runAlone(),
    }
    this.replanning = new Replanning({
      ...{ db, clock, logger, shards, schedules, calendars, turns, wakeups, cancelGraceMs },
      zoneData: deps.zoneData,
    })
    this.backfiller = new Backfiller({ db: db.bulk, clock, logger, schedules, turns, registry, wakeups, historyDays })
    this.waking = new Waking({ db, clock, logger, turns, wakeups, onNews: () => this.#agents.wake(this.waking) })
    this.deliverer = new Deliverer({ ...reopening, db, clock, turns, wakeups, cancelGraceMs })

    this.#notifier = new Notifier({ db, wakeups, logger, hasOthers: () => this.known.liveNodes > 1 })
    this.pulse = new Pulse({
      ...{ db: db.vital, clock, logger, shards },
      node: { id: this.nodeId, shard: shardOfKey(0, this.nodeId, shards), roles },
      address: () => deps.address?.() ?? null,
      timersReadUntil: (shard) => reader.watermark(shard),
      queueIds: () => [...new Set([...handlers.queueIds, ...this.remote.calls.queueIds])],
      beforeAsking: () => reader.aboutToLook(),
      charges: () => this.#exchange.tell(clock.now()),
      onOwners: (owned) => this.#agents.own(owned),
      onAnswer: (answer, asked) => this.#saw(answer, asked),
      onSchema: (found) => deps.onSchema?.(found),
    })
    this.#heart = new Agents([this.pulse, this.keeper], roles, { clock, logger })
    this.#agents = new Agents(
      [
        ...[this.#notifier, this.partitioner, this.reader, ...this.#promoters, promoterOfSingles, this.backfiller],
        ...[this.replanning.calendars, this.replanning.zones, this.waking, this.waking.sweep, this.deliverer],
        ...[this.httpQueues, this.http.circuits, this.http.limits, this.remote, this.reaper, this.expirer],
        {
          name: 'history keeper',
          role: 'archivist',
          runOnce: () => dropExpired({ db, clock, logger, retentionDays: historyDays }),
        },
        { name: 'purge', role: 'archivist', runOnce: () => this.purge() },
      ],
      roles,
      { clock, logger },
    )
    wakeups.listen(this.#listener(roles))
  }

  start(): void {
    this.#isRunning = true
    this.#heart.start()
    this.#agents.start()
  }

  handle(queueId: number, handler: Handler, concurrency: number): void {
    this.#serve(queueId, performHandler(handler, this.beginnings), concurrency, judge)
  }

  #serve(queueId: number, perform: Perform, concurrency: number, judges: Judge): void {
    const loop = this.handlers.serve(queueId, perform, concurrency, judges)
    if (!this.#isRunning) return
    loop.start()
    this.pulse.sweepNext()
    this.#heart.wake(this.pulse)
  }

  /** Something was changed that the pulse tells: resolved when this node knows. The others learn it within a second. */
  async refresh(): Promise<void> {
    if (!this.#isRunning) return
    const known = this.pulse.next()
    this.#heart.wake(this.pulse)
    await known
  }

  newId(at: Instant): string {
    return newJobId(0, at, this.#random)
  }

  purge(): Promise<{ waitMs: number }> {
    return purgeForgotten(this)
  }

  /** Takes nothing new, lets handlers finish within the grace time, gives back the rest, and leaves. */
  async stop(graceMs: number): Promise<void> {
    const drain = async () => {
      await this.#agents.stop()
      this.http.executor.stop()
      await this.remote.calls.stop()
      await this.handlers.drain(graceMs)
    }
    // While the database is away a step may wait for it: that, too, is given up.
    const tooLong = this.clock.timer(graceMs + FLUSH_MS, () => {
      this.finisher.abandon()
      this.#stopping.abort()
    })
    const gaveUp = new Promise((resolve) => this.#stopping.signal.addEventListener('abort', resolve))
    const drained = drain()
    drained.catch(() => {})
    await Promise.race([drained, gaveUp])
    tooLong.cancel()
    this.#stopping.abort()
    await this.#heart.stop()
    this.#isRunning = false
    await this.pulse.leave().catch(() => {})
    const message = this.wakeups.take()
    if (message !== null) await this.#notifier.send(message).catch(() => {})
    await this.#notifier.close()
    await this.http.close()
  }

  /** An executor has room: due timers may have waited for it. */
  #hasRoom(): void {
    if (this.promoter.holds) this.#agents.wake(...this.#promoters)
  }

  #saw(answer: PulseAnswer, asked: Asked): void {
    this.known.saw(answer, asked)
    this.#exchange.hear(answer.now, answer.fleet)
    this.registry.forget(answer.deletedQueueIds)
    const pausedQueueIds = new Set(answer.pausedQueueIds)
    for (const claimers of this.#claimers) claimers.setPaused(pausedQueueIds)
    this.#agents.saw(answer, asked)
    asked.queueIds.forEach((queueId, i) => {
      const heads = answer.heads[i] ?? []
      this.turns.saw(answer.now, queueId, heads)
      for (const claimers of this.#claimers) claimers.sweep(queueId, heads)
    })
  }

  get #claimers(): readonly [Handlers, RemoteWorkers['calls']] {
    return [this.handlers, this.remote.calls]
  }

  /** Which agent hears of what happened, here or on another node. */
  #listener(roles: readonly Role[]): Listener {
    const agents = this.#agents
    const { backfiller, deliverer, handlers, httpQueues, keeper, known, reader, remote, waking } = this
    return {
      onReady: (queueId, level, turn) => {
        for (const claimers of this.#claimers) claimers.hint(queueId, level, turn)
        if (roles.includes('dispatcher') && httpQueues.isNews(queueId)) agents.wake(httpQueues)
      },
      onTimer: (shard, dueAt) => {
        if (reader.want(shard, dueAt)) agents.wake(reader)
      },
      onWaiting: (shard, dueAt) => waking.shards.look(shard, dueAt),
      onCancel: (jobId, nominalAt) => {
        keeper.cancel(jobId, nominalAt)
        handlers.cancel(jobId, nominalAt)
        remote.cancel(jobId, nominalAt)
      },
      onBackfill: (jobId) => {
        if (backfiller.tell(jobId)) agents.wake(backfiller)
        waking.jobs.look(jobId)
      },
      onFreed: (queueId) => known.limited.freed(queueId),
      onEnded: (jobId, definitionJson) => {
        backfiller.ended(jobId)
        waking.ended(jobId, definitionJson)
      },
      onGone: (jobId) => {
        waking.jobs.look(jobId)
        deliverer.look()
        agents.wake(deliverer)
      },
      onBlocked: (jobId) => waking.expected.expect(jobId),
      onTold: () => {
        deliverer.look()
        agents.wake(deliverer)
      },
      onKeyFreed: (shard, key) => waking.keyFreed(shard, key),
      onKeyChanged: (shard, key) => waking.keyChanged(shard, key),
    }
  }
}
