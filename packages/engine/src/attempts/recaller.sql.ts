import { gateKeyOf } from '../job/gate-key.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { PAUSE_KIND, type PauseMark } from '../shards/paused.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { bringForward } from './bring-forward.sql.ts'

const FORGET = statement(
  'forget_pause',
  'delete from belfry.pauses p where p.id = $1 and p.ended_at = to_timestamp($2::float8 / 1000)',
)

/** One behind the other, a thousand a second; what is claimed of them is for their pools to say. */
const MAX_RECALLED = 5_000
/** What is due within this comes soon anyway, or has been called back already: each round takes others. */
const SOON_MS = 10_000
/** So long another node may not know of the end, and send runs away. */
const SETTLED_MS = 5_000
const LOOK_EVERY_MS = 1_000

interface RecallerDeps {
  db: Queryable
  clock: Clock
  wakeups: Wakeups
}

/**
 * Calls back the runs that a pause sent away, when it is over. Any node does so that hears of it, as long as the row of the pause is
 * there: a crash in between costs a second.
 */
export class Recaller implements Step {
  readonly #deps: RecallerDeps
  #ended: readonly PauseMark[] = []

  constructor(deps: RecallerDeps) {
    this.#deps = deps
  }

  /** Answers whether there is something to do. */
  saw(pauses: readonly PauseMark[]): boolean {
    this.#ended = pauses.filter(({ endedAt }) => endedAt !== null)
    return this.#ended.length > 0
  }

  async runOnce(): Promise<{ waitMs: number; recalled: number }> {
    let recalled = 0
    const ended = this.#ended
    this.#ended = []
    for (const pause of ended) recalled += await this.#recall(pause)
    return { waitMs: LOOK_EVERY_MS, recalled }
  }

  async #recall(pause: PauseMark): Promise<number> {
    const { db, clock, wakeups } = this.#deps
    const now = clock.now()
    const rows =
      pause.kind === PAUSE_KIND.key
        ? []
        : await bringForward(db, [gateKeyOf('pause', pause.tenantId, pause.name)], {
            ...{ dueAfter: now + SOON_MS, from: now, spacingMs: 1, limit: MAX_RECALLED },
          })
    for (const { shard, dueAt } of rows) wakeups.waiting(shard, dueAt)
    if (rows.length < MAX_RECALLED && now - (pause.endedAt ?? now) >= SETTLED_MS)
      await db.execute(FORGET, [pause.id, pause.endedAt])
    return rows.length
  }
}
