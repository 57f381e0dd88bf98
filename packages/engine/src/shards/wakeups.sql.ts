import { LEVELS, levelOf } from '../job/level.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Something that another loop may be sleeping on. It only ends a sleep early: losing it costs latency, never a run. */
export interface WakeListener {
  /** A run became ready. */
  onReady(queueId: number, level: number, turn: number): void
  /** A timer of the shard is due at this instant, perhaps earlier than what was read. */
  onTimer(shard: number, dueAt: Instant): void
  /** A run of the shard waits until this instant. */
  onWaiting(shard: number, dueAt: Instant): void
  /** A leased run shall stop. */
  onCancel(jobId: string, nominalAt: Instant): void
  /** A backfill of the job may go on. */
  onBackfill(jobId: string): void
  /** A run of a limited queue has ended: its slot is free. */
  onFreed(queueId: number): void
}

/** The same, of what only agents of this node need to hear, once it is committed. Other nodes find it with their pulse and sweeps. */
interface LocalListener {
  /** A run of the job is over, with the definition by which it was performed, as far as that is known. */
  onEnded(jobId: string, definitionJson: string | null | undefined): void
  /** A run of the job is gone: the next one may begin. */
  onGone(jobId: string): void
  /** A run of the job is about to wait for another. Told before the commit, so that no end of the other run comes between. */
  onBlocked(jobId: string): void
  /** What other jobs wait for stands in the outbox. */
  onTold(): void
  /** A slot of the key is free. */
  onKeyFreed(shard: number, key: string): void
  /** More of the key may be free than was told. */
  onKeyChanged(shard: number, key: string): void
}

export type Listener = WakeListener & LocalListener

/** One message, coalesced: per queue and level the lowest turn, per shard the lowest due time. */
export interface WakeMessage {
  ready?: [queueId: number, level: number, turn: number][]
  timers?: [shard: number, dueAt: Instant][]
  waiting?: [shard: number, dueAt: Instant][]
  cancel?: [jobId: string, nominalAt: Instant][]
  backfills?: [jobId: string][]
  freed?: [queueId: number][]
}

export const channelOf = (schema: string): string => `${schema}_wake`

const NOTIFY = statement('notify', 'select pg_notify($1, $2)')

/** A notification holds less than 8,000 bytes; whatever does not fit is found by the sweep. */
const MAX_MESSAGE_BYTES = 7_500
const MAX_CANCELS = 50
const MAX_BACKFILLS = 50

/** Tells the agents of this node at once, and gathers what the other nodes should hear. */
export class Wakeups {
  #listener: Listener | null = null
  readonly #ready = new Map<number, [number, number, number]>()
  readonly #timers = new Map<number, Instant>()
  readonly #waiting = new Map<number, Instant>()
  #cancels: [string, Instant][] = []
  readonly #backfills = new Set<string>()
  readonly #freed = new Set<number>()

  listen(listener: Listener): void {
    this.#listener = listener
  }

  ready(run: { queueId: number; priority: number; delivery: number; turn: number }): void {
    const { queueId, turn } = run
    const level = levelOf(run)
    this.#listener?.onReady(queueId, level, turn)
    const key = queueId * LEVELS + level
    const known = this.#ready.get(key)
    if (!known || known[2] > turn) this.#ready.set(key, [queueId, level, turn])
  }

  timer(shard: number, dueAt: Instant): void {
    this.#listener?.onTimer(shard, dueAt)
    lower(this.#timers, shard, dueAt)
  }

  waiting(shard: number, dueAt: Instant): void {
    this.#listener?.onWaiting(shard, dueAt)
    lower(this.#waiting, shard, dueAt)
  }

  cancel(jobId: string, nominalAt: Instant): void {
    this.#listener?.onCancel(jobId, nominalAt)
    if (this.#cancels.length < MAX_CANCELS) this.#cancels.push([jobId, nominalAt])
  }

  backfill(jobId: string): void {
    this.#listener?.onBackfill(jobId)
    if (this.#backfills.size < MAX_BACKFILLS) this.#backfills.add(jobId)
  }

  freed(queueId: number): void {
    this.#listener?.onFreed(queueId)
    this.#freed.add(queueId)
  }

  ended(jobId: string, definitionJson: string | null | undefined): void {
    this.#listener?.onEnded(jobId, definitionJson)
  }

  gone(jobId: string): void {
    this.#listener?.onGone(jobId)
  }

  blocked(jobId: string): void {
    this.#listener?.onBlocked(jobId)
  }

  told(): void {
    this.#listener?.onTold()
  }

  keyFreed(shard: number, key: string): void {
    this.#listener?.onKeyFreed(shard, key)
  }

  keyChanged(shard: number, key: string): void {
    this.#listener?.onKeyChanged(shard, key)
  }

  /** What was gathered since the last call, as one message for the other nodes; null if nothing was. */
  take(): string | null {
    const gathered = [this.#ready, this.#timers, this.#waiting, this.#backfills, this.#freed]
    if (this.#cancels.length === 0 && gathered.every(({ size }) => size === 0)) return null
    const message: WakeMessage = {}
    if (this.#ready.size > 0) message.ready = [...this.#ready.values()]
    if (this.#timers.size > 0) message.timers = [...this.#timers]
    if (this.#waiting.size > 0) message.waiting = [...this.#waiting]
    if (this.#cancels.length > 0) message.cancel = this.#cancels
    if (this.#backfills.size > 0) message.backfills = [...this.#backfills].map((jobId) => [jobId])
    if (this.#freed.size > 0) message.freed = [...this.#freed].map((queueId) => [queueId])
    for (const one of gathered) one.clear()
    this.#cancels = []
    const text = JSON.stringify(message)
    return text.length <= MAX_MESSAGE_BYTES
      ? text
      : JSON.stringify({ ready: message.ready?.slice(0, 100), cancel: message.cancel })
  }

  /** In a caller's transaction the notification must go along: nobody else knows when it commits. */
  async inTransaction(
    tx: Queryable,
    schema: string,
    timers: readonly (readonly [shard: number, dueAt: Instant])[],
  ): Promise<void> {
    const lowest = new Map<number, Instant>()
    for (const [shard, dueAt] of timers) lower(lowest, shard, dueAt)
    await tx.query(NOTIFY, [channelOf(schema), JSON.stringify({ timers: [...lowest] })])
  }

  /** Passes another node's message on. Anybody may notify, so nothing in it is trusted to be well formed. */
  receive(text: string): void {
    let message: WakeMessage
    try {
      message = JSON.parse(text) as WakeMessage
    } catch {
      return
    }
    if (typeof message !== 'object' || message === null) return
    for (const item of listOf(message.ready)) this.#listener?.onReady(Number(item[0]), Number(item[1]), Number(item[2]))
    for (const item of listOf(message.timers)) this.#listener?.onTimer(Number(item[0]), Number(item[1]))
    for (const item of listOf(message.waiting)) this.#listener?.onWaiting(Number(item[0]), Number(item[1]))
    for (const item of listOf(message.cancel)) this.#listener?.onCancel(String(item[0]), Number(item[1]))
    for (const item of listOf(message.backfills)) this.#listener?.onBackfill(String(item[0]))
    for (const item of listOf(message.freed)) this.#listener?.onFreed(Number(item[0]))
  }
}

const listOf = (value: unknown): unknown[][] =>
  Array.isArray(value) ? value.filter((item) => Array.isArray(item)) : []

function lower(map: Map<number, Instant>, shard: number, dueAt: Instant): void {
  const known = map.get(shard)
  if (known === undefined || known > dueAt) map.set(shard, dueAt)
}
