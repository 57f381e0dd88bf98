import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Queryable, Vital } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Lease } from './lease.ts'
import { HELD_TO_PERFORM, type HeldRow, leaseOf } from './lease-row.ts'

const TERMINATE = statement(
  'terminate_backend',
  `select pg_terminate_backend(a.pid) from pg_stat_activity a where a.pid = $1 and a.application_name = 'belfry'`,
)
const LEASES_OF = statement(
  'leases_of_holder',
  `select ${HELD_TO_PERFORM} from belfry.runs r where r.state = ${RUN_STATE.leased} and r.holder = $1`,
)
/** The same for holders of remote calls, which have an index. The state is not asked for: what has a holder is leased. */
const REMOTE_LEASES_OF = statement(
  'leases_of_remote_holders',
  `select ${HELD_TO_PERFORM} from unnest($1::bigint[]) as u (holder) join belfry.runs r on r.holder = u.holder and r.holder < 0`,
)
const REPEATED = statement(
  'holders_with_leases',
  `select u.holder from unnest($1::bigint[]) as u (holder) cross join lateral (
     select from belfry.runs r
     where r.holder = u.holder and r.holder < 0 and r.leased_at is distinct from to_timestamp($2::float8 / 1000) limit 1) held`,
)

const LOOK_AGAIN_MS = 100

/**
 * A leasing statement's connection was lost: it may have committed, may never, or may still be at work. The backend is
 * ended and waited for, then the runs of exactly this statement's holder are asked for. Waits while the database is away.
 *
 * The pid may have been given to another of our backends since. Ending that one is harmless: whatever it did is sent again
 * or recovered. Telling the two apart by time is not: the one that holds our runs may have been opened after the statement
 * was timed, and left alone it would commit leases that nobody performs.
 */
export function recoverLeases(
  deps: { db: Vital; logger: Logger },
  lost: { holder: string; backendPid: number },
  signal: AbortSignal,
): Promise<Lease[]> {
  return whenGone(deps, lost.backendPid, signal, async () =>
    (await deps.db.query<HeldRow>(LEASES_OF, [lost.holder])).map(leaseOf),
  )
}

/** The same for a statement that leased for several remote calls. */
export function recoverRemoteLeases(
  deps: { db: Vital; logger: Logger },
  lost: { holders: readonly string[]; backendPid: number },
  signal: AbortSignal,
): Promise<Lease[]> {
  return whenGone(deps, lost.backendPid, signal, () => leasesOfCalls(deps.db, lost.holders))
}

/** What these remote calls hold. */
export async function leasesOfCalls(db: Queryable, holders: readonly string[]): Promise<Lease[]> {
  return (await db.query<HeldRow>(REMOTE_LEASES_OF, [holders])).map(leaseOf)
}

/** Those of these remote calls that hold something; what was leased at that very instant does not count. */
export async function callsWithLeases(
  db: Queryable,
  holders: readonly string[],
  exceptOf: Instant | null,
): Promise<Set<string>> {
  return new Set((await db.query<[string]>(REPEATED, [holders, exceptOf])).flat())
}

async function whenGone(
  deps: { db: Vital; logger: Logger },
  backendPid: number,
  signal: AbortSignal,
  read: () => Promise<Lease[]>,
): Promise<Lease[]> {
  while (!signal.aborted) {
    try {
      const still = await deps.db.query(TERMINATE, [backendPid])
      if (still.length === 0) return await read()
    } catch (error) {
      deps.logger.debug('the database does not answer yet', { error })
    }
    await pause(LOOK_AGAIN_MS)
  }
  return []
}
