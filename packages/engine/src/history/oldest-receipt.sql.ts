import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const OLDEST = statement('oldest_receipt', 'select min(c.leased_at) from belfry.receipts c')

/** Which runs of a receipt have ended is told by history. Infinite: there is no receipt. */
export async function oldestReceipt(db: Queryable): Promise<Instant> {
  return (await db.query<[Instant | null]>(OLDEST, []))[0]?.[0] ?? Number.POSITIVE_INFINITY
}
