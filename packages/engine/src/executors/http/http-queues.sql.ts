import type { Step } from '../../runtime/loop.ts'
import type { Queryable } from '../../store/database.ts'
import { statement } from '../../store/statement.ts'

const HTTP_QUEUES = statement('http_queues', 'select q.id from belfry.queues q where q.kind = 1 limit 10000')

/** The pulse says when there are more; this is for what it cannot count. */
const LOOK_EVERY_MS = 60_000

interface HttpQueuesDeps {
  db: Queryable
  serves(queueId: number): boolean
  serve(queueId: number): void
}

/** Finds the queues whose runs are HTTP calls, the system's own and the tenants', and has them served. */
export class HttpQueues implements Step {
  readonly name = 'HTTP queues'
  readonly role = 'dispatcher'
  readonly #deps: HttpQueuesDeps
  readonly #others = new Set<number>()
  #known = -1

  constructor(deps: HttpQueuesDeps) {
    this.#deps = deps
  }

  async runOnce(): Promise<{ waitMs: number }> {
    this.#others.clear()
    const { db, serves, serve } = this.#deps
    const rows = await db.query<[number]>(HTTP_QUEUES, [])
    this.#known = rows.length
    for (const [queueId] of rows) if (!serves(queueId)) serve(queueId)
    return { waitMs: LOOK_EVERY_MS }
  }

  saw({ httpQueues }: { httpQueues: number }): boolean {
    return httpQueues > this.#known
  }

  /** A run of this queue is ready: whether that is a reason to look. */
  isNews(queueId: number): boolean {
    if (this.#deps.serves(queueId) || this.#others.has(queueId)) return false
    this.#others.add(queueId)
    return true
  }
}
