import type pg from 'pg'
import type { Database } from '../store/database.ts'
import type { Partition } from './partition.ts'
import { detach, drop, probe } from './partition-ddl.sql.ts'
import { inShortTransaction, isBusy, isGone } from './short-transaction.ts'

export type Rescue = (client: pg.Client) => Promise<void>

/** From the detachment to the commit every other transaction waits; a rescue that turns out to be long is given up. */
const STATEMENT_TIMEOUT_MS = 1_000

/**
 * Detaches a day and drops it, in one transaction. Detaching locks the parent against every other transaction, which the
 * concurrent form would not, but that form works in no transaction. So it may wait for the lock timeout and no longer:
 * the statements that come meanwhile queue behind it. Before that, a lock that does not wait at all meets readers of the
 * day itself, so such a try delays no other statement.
 *
 * `rescue` is called between the two, while no other transaction has the day: it takes out what must stay.
 */
export async function dropPartition(
  db: Database,
  partition: Partition,
  rescue: Rescue,
): Promise<'dropped' | 'busy' | 'gone'> {
  try {
    return await db.apart(async (client) => {
      await inShortTransaction(client, () => client.query(probe(db.schema, partition)))
      await inShortTransaction(client, async () => {
        await client.query(`set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`)
        await client.query(detach(db.schema, partition))
        await rescue(client)
        await client.query(drop(db.schema, partition))
      })
      return 'dropped' as const
    })
  } catch (error) {
    if (isBusy(error)) return 'busy'
    if (isGone(error)) return 'gone'
    throw error
  }
}
