import type { Step } from '../../runtime/loop.ts'
import type { Queryable } from '../../store/database.ts'
import { statement } from '../../store/statement.ts'

const HTTP_QUEUES = statement('http_queues', 'select q.id from belfry.queues q where q.kind = 1 limit 10000')

/** What another node made without anybody saying so is found after this. */
const LOOK_EVERY_MS = 2_000

interface HttpQueuesDeps {
  db: Queryable
  serves(queueId: number): boolean
  serve(queueId: number): void
}

/** Finds the queues whose runs are HTTP calls, the system's own and the tenants', and has them served. */
export class HttpQueues implements Step {
  readonly #deps: HttpQueuesDeps
  readonly #others = new Set<number>()

  constructor(deps: HttpQueuesDeps) {
    this.#deps = deps
  }

  async runOnce(): Promise<{ waitMs: number }> {
    this.#others.clear()
    const { db, serves, serve } = this.#deps
    for (const [queueId] of await db.query<[number]>(HTTP_QUEUES, [])) if (!serves(queueId)) serve(queueId)
    return { waitMs: LOOK_EVERY_MS }
  }

  /** A run of this queue is ready: whether that is a reason to look. */
  isNews(queueId: number): boolean {
    if (this.#deps.serves(queueId) || this.#others.has(queueId)) return false
    this.#others.add(queueId)
    return true
  }
}
