import { purgeRunPayloads } from '../attempts/run-payloads.sql.ts'
import { purgeBackfills } from '../backfill/purge-backfills.sql.ts'
import { purgeUnusedKeys } from '../concurrency/key-limits.sql.ts'
import { purgeBatches } from '../dependencies/batches.sql.ts'
import { purgeEdges } from '../dependencies/purge-edges.sql.ts'
import { dayOf } from '../history/partition.ts'
import { purgeSpecs } from '../history/referred-specs.sql.ts'
import { purgeKeys } from '../intake/unique-keys.sql.ts'
import { purgeCheckpoints } from '../leases/checkpoints.sql.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Bulk, Database } from '../store/database.ts'
import { purgeWorkers } from '../tenants/worker-rows.sql.ts'
import type { HttpSide } from './http-side.ts'

const KEYS_AT_ONCE = 1_000

async function purgeAllKeys(db: Bulk, shards: number, now: Instant): Promise<void> {
  for (let shard = 0; shard < shards; shard++) while ((await purgeKeys(db, shard, now, KEYS_AT_ONCE)) === KEYS_AT_ONCE);
}

/** Removes what is sealed or was given along and that nobody needs any more, and workers that are long gone. */
export async function purgeForgotten(deps: {
  db: Database
  clock: Clock
  shards: number
  historyDays: number
  http: HttpSide
}): Promise<{ waitMs: number }> {
  const { clock, shards, historyDays, http } = deps
  const db = deps.db.bulk
  const now = clock.now()
  const forgotten = now - historyDays * DAY_MS
  // One that fails keeps none of the others from their turn.
  const purges = await Promise.allSettled([
    purgeRunPayloads(db, forgotten),
    purgeBackfills(db, shards, forgotten),
    purgeWorkers(db, now - DAY_MS),
    purgeCheckpoints(db),
    purgeUnusedKeys(db, now),
    purgeEdges(db),
    purgeSpecs(db, dayOf(forgotten)),
    purgeBatches(db, forgotten),
    purgeAllKeys(db, shards, now),
  ])
  const done = await http.purge()
  for (const purge of purges) if (purge.status === 'rejected') throw purge.reason
  return done
}
