import type pg from 'pg'

/** How long a change of the tables may stand in the way of everybody behind it. */
export const LOCK_TIMEOUT_MS = 100

/** Lock not available, deadlock, statement timeout. */
const BUSY = new Set<unknown>(['55P03', '40P01', '57014'])
const UNDEFINED_TABLE = '42P01'

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code

/** Somebody was in the way for longer than we may wait, or we would have been in everybody's. */
export const isBusy = (error: unknown): boolean => BUSY.has(codeOf(error))

export const isGone = (error: unknown): boolean => codeOf(error) === UNDEFINED_TABLE

export async function inShortTransaction<Result>(client: pg.Client, work: () => Promise<Result>): Promise<Result> {
  await client.query('begin isolation level read committed')
  try {
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    // What went wrong is the error to tell; if the connection is gone, there is nothing to roll back.
    await client.query('rollback').catch(() => {})
    throw error
  }
}
