import { Admin } from './admin.ts'
import { Expirer } from './attempts/expirer.sql.ts'
import { Finisher } from './attempts/finisher.ts'
import { Reaper } from './attempts/reaper.sql.ts'
import { RunChanges } from './attempts/run-changes.sql.ts'
import { Backfiller } from './backfill/backfiller.ts'
import { Backfills } from './backfill/backfills.ts'
import { DependencySide } from './dependency-side.ts'
import type { EngineDeps } from './engine-deps.ts'
import { EngineLoops } from './engine-loops.ts'
import type { Perform } from './executors/handlers/handler-pool.ts'
import { Handlers } from './executors/handlers/handlers.ts'
import { type Judge, judge } from './executors/handlers/judge.ts'
import { Keeper } from './executors/handlers/keeper.ts'
import { type Handler, performHandler } from './executors/handlers/perform-handler.ts'
import { HttpQueues } from './executors/http/http-queues.sql.ts'
import { judgeHttp } from './executors/http/judge-http.ts'
import { RemoteWorkers } from './executors/remote/remote-workers.ts'
import { dropExpired } from './history/drop-expired.ts'
import { Partitioner } from './history/partitioner.ts'
import { HttpSide } from './http-side.ts'
import { Intake } from './intake/intake.ts'
import { JobChanges } from './intake/job-changes.ts'
import { planJob } from './intake/plan-job.sql.ts'
import { retakeUnique } from './intake/retake-unique.ts'
import { newJobId, shardOfKey } from './job/ids.ts'
import { Definitions } from './leases/definitions.sql.ts'
import { Forecasts } from './lookup/forecasts.ts'
import { PauseSide } from './pause-side.ts'
import { PromoteAlone } from './promotion/promote-alone.ts'
import { Promoter } from './promotion/promoter.ts'
import { Replanning } from './promotion/replanning.ts'
import { Schedules } from './promotion/schedules.sql.ts'
import { purgeForgotten } from './purge-forgotten.ts'
import { QueueLimits } from './queue-limits.ts'
import { Exchange } from './ready/exchange.ts'
import { Turns } from './ready/turn.ts'
import type { Clock, Instant } from './runtime/clock.ts'
import { Notifier } from './shards/notifier.ts'
import type { PulseAnswer } from './shards/pulse.sql.ts'
import { Pulse, type PulseDeps } from './shards/pulse.ts'
import { Registry } from './shards/registry.sql.ts'
import { ALL_ROLES } from './shards/roles.ts'
import { Wakeups } from './shards/wakeups.sql.ts'
import type { Database, Queryable } from './store/database.ts'
import { Calendars } from './tenants/calendars.sql.ts'
import { Quotas } from './tenants/quotas.sql.ts'
import { TimerReader } from './timers/timer-reader.ts'
import { WakeSide } from './wake-side.ts'

/** Statements of one kind run on a few connections at once, so that both sides keep their cores busy. */
const FINISH_LANES = 2
const MAX_BATCH = 1_000
/** The pulse wakes the reaper; alone it only looks whether it was asked. */
const REAP_AT_LEAST_MS = 1_000
/** Runs of one HTTP queue at a time; the calls among them are bounded by the slots of their origins. */
const HTTP_CONCURRENCY = 1_000
const KEY_BYTES = 32
const LOCAL_URL = 'http://127.0.0.1:8080'
/** After the grace time, what has ended still has this long to reach the database. */
const FLUSH_MS = 5_000

/** One node: everything that runs in it, composed in one place. Nodes know each other only through the database. */
export class Engine {
  readonly db: Database
  readonly clock: Clock
  readonly nodeId: string
  readonly shards: number
  readonly registry: Registry
  readonly wakeups = new Wakeups()
  readonly turns = new Turns()
  readonly #exchange = new Exchange(this.turns)
  readonly intake: Intake
  readonly jobChanges: JobChanges
  readonly runChanges: RunChanges
  readonly backfills: Backfills
  readonly handlers: Handlers
  readonly queueLimits: QueueLimits
  readonly pauses: PauseSide
  readonly waking: WakeSide
  readonly dependencies: DependencySide
  /** Runs that workers elsewhere perform. */
  readonly remote: RemoteWorkers
  readonly finisher: Finisher
  readonly reader: TimerReader
  readonly promoter: Promoter
  readonly replanning: Replanning
  readonly backfiller: Backfiller
  readonly reaper: Reaper
  readonly expirer: Expirer
  readonly keeper: Keeper
  readonly pulse: Pulse
  readonly partitioner: Partitioner
  readonly http: HttpSide
  readonly httpQueues: HttpQueues
  readonly quotas: Quotas
  readonly calendars: Calendars
  readonly schedules: Schedules
  readonly admin: Admin
  readonly #notifier: Notifier
  readonly #stopping = new AbortController()
  readonly #loops: EngineLoops
  readonly historyDays: number
  readonly forecasts: Forecasts
  #liveNodes = 1
  #toReap: { shards: number[]; databaseNow: Instant } | null = null
  #running = false

  constructor(deps: EngineDeps) {
    const { db, clock, random, logger, shards, leaseMs, cancelGraceMs, roles = ALL_ROLES } = deps
    const stopping = this.#stopping.signal
    const { wakeups, turns } = this
    this.db = db
    this.clock = clock
    this.shards = shards
    this.historyDays = deps.historyDays
    this.nodeId = newJobId(0, clock.now(), random)
    this.registry = new Registry(db.aside, clock)
    this.partitioner = new Partitioner({
      db,
      clock,
      logger,
      ...(deps.daysAhead === undefined ? {} : { daysAhead: deps.daysAhead }),
    })
    db.onMissingPartition(() => this.partitioner.ensure())
    this.schedules = new Schedules(db.aside)
    this.calendars = new Calendars({ db, clock })
    const { schedules, calendars, registry } = this
    this.forecasts = new Forecasts({ clock, schedules, shards })
    const known = { definitions: new Definitions(db), schedules, calendars, registry }
    const claimers = () => [this.handlers, this.remote.calls]
    this.queueLimits = new QueueLimits({ clock, wakeups, claimers, sweepNext: () => this.pulse.sweepNext() })
    this.pauses = new PauseSide({ db, clock, random })
    const { paused, room, queueSettings } = this.pauses
    const settings = { shards, leaseMs, cancelGraceMs, limited: this.queueLimits.queues, paused, room, queueSettings }
    const onGone = (jobId: string) => {
      this.waking.jobs.look(jobId)
      this.dependencies.deliverer.look()
    }
    const onBlocked = (jobId: string) => this.waking.expected.expect(jobId)
    const retakeUniqueKey = (tx: Queryable, jobId: string) => retakeUnique(tx, jobId, { shards, now: clock.now() })
    this.dependencies = new DependencySide({
      ...{ db, clock, logger, turns, wakeups, cancelGraceMs, onBlocked },
      retakeUnique: retakeUniqueKey,
    })
    const hooks = { ...this.dependencies.hooks, onBlocked }
    const onNews = () => this.#loops.waker.wake()
    this.waking = new WakeSide({ db, clock, logger, turns, wakeups, onNews, onGone })
    const ground = {
      db,
      clock,
      random,
      logger,
      wakeups,
      turns,
      stopping,
      ...settings,
      ...known,
      ...this.waking.hooks,
      ...hooks,
    }
    this.finisher = new Finisher(
      {
        ...ground,
        onEnded: (jobId, definitionJson) => {
          this.backfiller.ended(jobId)
          this.waking.ended(jobId, definitionJson)
        },
        onFreed: this.queueLimits.onFreed,
        ensurePartitions: () => this.partitioner.ensure(),
      },
      { lanes: FINISH_LANES, maxBatch: MAX_BATCH },
    )
    const base = { ...ground, finisher: this.finisher }
    this.handlers = new Handlers({
      ...base,
      onRoom: () => {
        if (this.promoter.holds) this.#loops.wakePromoters()
      },
    })
    const vaultKey = deps.vaultKey ?? random.bytes(KEY_BYTES)
    this.remote = new RemoteWorkers({ ...base, vaultKey, onNewWorker: () => this.#loops.remote.wake() })
    this.intake = new Intake(base)
    this.jobChanges = new JobChanges(base)
    this.runChanges = new RunChanges({ ...base, onGone, retakeUnique: retakeUniqueKey })
    this.backfills = new Backfills({ ...base, historyDays: deps.historyDays })
    this.backfiller = new Backfiller({ ...base, historyDays: deps.historyDays })
    this.reader = new TimerReader({ db, clock, onRead: () => this.#loops.wakePromoters() })
    const alone = new PromoteAlone({
      ...base,
      plan: (tx, timer) => planJob(tx, { clock, intake: this.intake }, timer),
    })
    const onAlone = () => this.#loops.alone.wake()
    this.promoter = new Promoter({ ...base, reader: this.reader, direct: this.handlers, alone, onAlone })
    this.replanning = new Replanning({ ...deps, ...base })
    this.reaper = new Reaper(base)
    this.expirer = new Expirer({ ...base, onGone })
    this.keeper = new Keeper({ ...base, pools: () => this.handlers.pools })
    this.pulse = new Pulse({
      ...base,
      node: { id: this.nodeId, shard: shardOfKey(0, this.nodeId, shards), roles },
      address: () => deps.address?.() ?? null,
      ownTime: deps.ownTime,
      timersReadUntil: (shard) => this.reader.watermark(shard),
      queueIds: () => [...new Set([...this.handlers.queueIds, ...this.remote.calls.queueIds])],
      beforeAsking: () => this.reader.aboutToLook(),
      charges: () => this.#exchange.tell(clock.now()),
      onOwners: (owned) => this.#own(owned),
      onAnswer: (answer, asked) => this.#onPulse(answer, asked),
    })
    this.admin = new Admin({ db, clock, random, refresh: () => this.refresh() })
    this.quotas = new Quotas({ db, clock, tenants: this.admin.tenants })
    this.http = new HttpSide({
      ...base,
      vaultKey,
      allowPrivateTargets: deps.allowPrivateTargets ?? false,
      publicUrl: () => deps.publicUrl?.() ?? LOCAL_URL,
      liveNodes: () => this.#liveNodes,
      payloadLimit: (tenantId) => this.quotas.payloadLimit(tenantId),
      settings: deps.http ?? {},
    })
    this.httpQueues = new HttpQueues({
      db,
      serves: (queueId) => this.handlers.serves(queueId),
      serve: (queueId) => this.#serve(queueId, this.http.executor.perform, HTTP_CONCURRENCY, judgeHttp),
    })
    this.#notifier = new Notifier({ db, wakeups, logger, hasOthers: () => this.#liveNodes > 1 })
    this.#loops = new EngineLoops(
      {
        ...{ pulse: this.pulse, keeper: this.keeper, partitioner: this.partitioner, reader: this.reader },
        ...{ promoter: this.promoter, backfiller: this.backfiller, expirer: this.expirer },
        ...{ httpQueues: this.httpQueues, remote: this.remote, http: this.http },
        ...{ replanning: this.replanning, waking: this.waking },
        dependencies: this.dependencies,
        notifier: this.#notifier,
        reaper: { runOnce: () => this.#reap() },
        historyKeeper: { runOnce: () => dropExpired({ db, clock, logger, retentionDays: deps.historyDays }) },
        purge: { runOnce: () => this.purge() },
      },
      roles,
      deps,
    )
    const dispatches = roles.includes('dispatcher')
    wakeups.listen({
      onReady: (queueId, level, turn) => {
        this.handlers.hint(queueId, level, turn)
        this.remote.calls.hint(queueId, level, turn)
        if (dispatches && this.httpQueues.isNews(queueId)) this.#loops.httpQueues.wake()
      },
      onTimer: (shard, dueAt) => {
        if (this.reader.want(shard, dueAt)) this.#loops.reader.wake()
      },
      onWaiting: (shard, dueAt) => this.waking.shards.look(shard, dueAt),
      onCancel: (jobId, nominalAt) => {
        this.keeper.cancel(jobId, nominalAt)
        this.remote.cancel(jobId, nominalAt)
      },
      onBackfill: (jobId) => {
        if (this.backfiller.tell(jobId)) this.#loops.backfiller.wake()
        this.waking.jobs.look(jobId)
      },
      onFreed: (queueId) => this.queueLimits.queues.freed(queueId),
    })
  }

  start(): void {
    this.#running = true
    this.#loops.start()
  }

  handle(queueId: number, handler: Handler, concurrency: number): void {
    this.#serve(queueId, performHandler(handler), concurrency, judge)
  }

  #serve(queueId: number, perform: Perform, concurrency: number, judges: Judge): void {
    const loop = this.handlers.serve(queueId, perform, concurrency, judges)
    if (!this.#running) return
    loop.start()
    this.pulse.sweepNext()
    this.#loops.pulse.wake()
  }

  /** Something was changed that the pulse tells: resolved when this node knows. The others learn it within a second. */
  async refresh(): Promise<void> {
    if (!this.#running) return
    const known = this.pulse.next()
    this.#loops.pulse.wake()
    await known
  }

  purge(): Promise<{ waitMs: number }> {
    return purgeForgotten(this)
  }

  /** Takes nothing new, lets handlers finish within the grace time, gives back the rest, and leaves. */
  async stop(graceMs: number): Promise<void> {
    const drain = async () => {
      await this.#loops.stopOthers()
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
    await this.#loops.stopLast()
    this.#running = false
    await this.pulse.leave().catch(() => {})
    const message = this.wakeups.take()
    if (message !== null) await this.#notifier.send(message).catch(() => {})
    await this.#notifier.close()
    await this.http.close()
  }

  #own(shards: number[]): void {
    this.reader.own(shards)
    this.replanning.own(shards)
    this.backfiller.own(shards)
    this.waking.own(shards)
    this.expirer.own(shards)
    this.#loops.reader.wake()
  }

  #onPulse(answer: PulseAnswer, asked: Parameters<PulseDeps['onAnswer']>[1]): void {
    this.queueLimits.saw(answer, asked)
    this.pauses.saw(answer)
    this.#liveNodes = answer.liveNodes.length
    this.#exchange.hear(answer.now, answer.fleet)
    const paused = new Set(answer.pausedQueueIds)
    this.handlers.setPaused(paused)
    this.remote.calls.setPaused(paused)
    this.registry.forget(answer.deletedQueueIds)
    if (this.replanning.saw(answer)) this.#loops.replanner.wake()
    if (this.httpQueues.saw(answer.httpQueues)) this.#loops.httpQueues.wake()
    let toRead = false
    asked.shards.forEach((shard, i) => {
      if (this.reader.saw(shard, answer.timersDue[i] ?? Number.POSITIVE_INFINITY)) toRead = true
    })
    if (toRead) this.#loops.reader.wake()
    if (this.backfiller.saw(answer.hasBackfills)) this.#loops.backfiller.wake()
    if (this.waking.saw(answer, asked)) this.#loops.sweep.wake()
    this.dependencies.saw(answer.hasOutbox)
    if (this.expirer.saw(answer.hasStartDeadlines)) this.#loops.expirer.wake()
    asked.queueIds.forEach((queueId, i) => {
      this.turns.saw(answer.now, queueId, answer.heads[i] ?? [])
      this.handlers.sweep(queueId, answer.heads[i] ?? [])
      this.remote.calls.sweep(queueId, answer.heads[i] ?? [])
    })
    const inGrace = answer.graceUntil !== null && answer.now < answer.graceUntil
    // Not awaited here: the pulse must go on while leases are closed.
    if (answer.hasExpired && !inGrace) {
      this.#toReap = { shards: asked.shards, databaseNow: answer.now }
      this.#loops.reaper.wake()
    }
  }

  async #reap(): Promise<{ waitMs: number }> {
    const asked = this.#toReap
    this.#toReap = null
    if (asked) await this.reaper.reap(asked.shards, asked.databaseNow)
    return { waitMs: REAP_AT_LEAST_MS }
  }
}
