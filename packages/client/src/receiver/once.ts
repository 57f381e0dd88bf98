import { ReceiverError } from './receiver-error.ts'

/**
 * The receiver's own record of the runs that it has performed, in its own database, written in the transaction that
 * performs them: so both are there or neither is. A row stands for an effect that was committed; a rollback takes
 * both back.
 */

/** A `pg` client, or anything else that sends a statement on one connection and answers `{ rows }`. */
export interface OnceClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export type OnceOutcome<Result> =
  | { alreadyDone: false; result: Result }
  /** What the first call's `fn` answered, as far as JSON can say it. */
  | { alreadyDone: true; result: Result; doneAt: Date }

/** Of this table only; whoever makes it at the same time waits, since `if not exists` alone does not. */
const TABLE_LOCK = 4_701_823_945

const CREATE_TABLE = `do $$
begin
  perform pg_advisory_xact_lock(${TABLE_LOCK});
  create table if not exists belfry_once (
    run_id  text primary key,
    done_at timestamptz not null default clock_timestamp(),
    result  text
  );
end $$`
const CLAIM = 'insert into belfry_once (run_id) values ($1) on conflict do nothing returning run_id'
const KEEP_RESULT = 'update belfry_once set result = $2 where run_id = $1'
const READ = 'select done_at, result from belfry_once where run_id = $1'
const FORGET = `delete from belfry_once where done_at < clock_timestamp() - make_interval(days => $1) returning run_id`

const DEFAULT_FORGET_DAYS = 90
const NO_ACTIVE_TRANSACTION = '25P01'

/** May be called at every start. */
export async function createOnceTable(client: OnceClient): Promise<void> {
  await client.query(CREATE_TABLE)
}

/**
 * Performs `fn` unless a committed transaction has done so for this run. `tx` is a client inside a transaction that the
 * caller began and will end. While another transaction performs the same run, this waits for it: if it commits, its
 * result is the answer; if it rolls back, `fn` is performed here. If `fn` throws, all that it wrote is taken back at
 * once, so that even a caller who commits nevertheless leaves nothing behind.
 */
export async function once<Result>(
  tx: OnceClient,
  runId: string,
  fn: () => Promise<Result> | Result,
): Promise<OnceOutcome<Result>> {
  await begin(tx)
  try {
    const claimed = await tx.query(CLAIM, [runId])
    const outcome = claimed.rows.length > 0 ? await perform(tx, runId, fn) : await earlier<Result>(tx, runId)
    await tx.query('release savepoint belfry_once')
    return outcome
  } catch (error) {
    // Where this fails the connection is gone, and the transaction with it.
    await tx.query('rollback to savepoint belfry_once').catch(() => {})
    throw error
  }
}

/** Forgets what was done long ago. Belfry repeats a run while it is retried, or when its dead letter is redriven. */
export async function forgetOnce(
  client: OnceClient,
  { olderThanDays = DEFAULT_FORGET_DAYS }: { olderThanDays?: number } = {},
): Promise<{ forgotten: number }> {
  const { rows } = await client.query(FORGET, [olderThanDays])
  return { forgotten: rows.length }
}

/** Outside a transaction, or on a pool whose statements go to different connections, a savepoint cannot be. */
async function begin(tx: OnceClient): Promise<void> {
  try {
    await tx.query('savepoint belfry_once')
  } catch (error) {
    if ((error as { code?: unknown }).code !== NO_ACTIVE_TRANSACTION) throw error
    throw new ReceiverError('no_transaction', 'once needs a client inside a transaction: send BEGIN on it first', {
      cause: error,
    })
  }
}

async function perform<Result>(
  tx: OnceClient,
  runId: string,
  fn: () => Promise<Result> | Result,
): Promise<OnceOutcome<Result>> {
  const result = await fn()
  const json = JSON.stringify(result)
  if (json !== undefined) await tx.query(KEEP_RESULT, [runId, json])
  return { alreadyDone: false, result }
}

async function earlier<Result>(tx: OnceClient, runId: string): Promise<OnceOutcome<Result>> {
  const { rows } = await tx.query(READ, [runId])
  const row = rows[0] as { done_at: Date | string; result: string | null } | undefined
  // It was there when the insert met it; only somebody who forgets runs of today can have removed it since.
  if (row === undefined) throw new Error(`${runId} was forgotten from belfry_once while it was read`)
  const result = (row.result === null ? undefined : JSON.parse(row.result)) as Result
  return { alreadyDone: true, result, doneAt: new Date(row.done_at) }
}
