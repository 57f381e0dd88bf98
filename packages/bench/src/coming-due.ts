import type { Belfry } from '@belfry/engine'
import type pg from 'pg'
import { CONCURRENCY, countAttempts, createAll, DEADLINE_MS, type JobInput, settle, waitForHistory } from './belfry.ts'
import { readNumber } from './database.ts'
import { type Spent, startMeter } from './meter.ts'
import { type Tally, tallyUntil } from './tally.ts'

/**
 * Work that is loaded first and comes due at an instant soon after, on a node that runs all the while, as in life. How
 * long loading takes is only known afterwards, so the instant is set by the rate of a small load before it.
 */
export interface ComingDue {
  belfry: Belfry
  client: pg.Client
  queue: string
  count: number
  /** How many can be created in a second; what the run before said, or a careful guess. */
  createRate: number
  jobAt(index: number, firstDue: number): JobInput
}

export interface Outcome {
  /** From the first due instant until the last attempt was in history. */
  seconds: number
  /** From the first due instant until the last handler had begun. */
  lastStartSeconds: number
  createRate: number
  spent: Spent
}

/** Set aside after the load, for statistics and for the handler to be registered. */
const SETTLING_MS = 2_000

export async function runWhenDue(work: ComingDue): Promise<Outcome> {
  const leadMs = (work.count / work.createRate) * 1_000 * 2 + SETTLING_MS
  // On a whole second, as crons are.
  const firstDue = Math.ceil((Date.now() + leadMs) / 1_000) * 1_000
  const before = await countAttempts(work.client)
  const createRate = await createAll(work.belfry, work.count, (index) => work.jobAt(index, firstDue))
  await settle(work.client)

  const tally = tallyUntil(work.count, DEADLINE_MS)
  let lastStart = 0
  work.belfry.handle(work.queue, async () => countStart(), { concurrency: CONCURRENCY })
  function countStart(): void {
    tally.count()
    if (tally.counted === work.count) lastStart = Date.now()
  }
  mustBeEarly(firstDue, tally)

  await new Promise((wake) => setTimeout(wake, firstDue - Date.now() - 50))
  const meter = await startMeter(work.client)
  await tally.all
  await waitForHistory(work.client, before + work.count)
  const seconds = ((await databaseNow(work.client)) - firstDue) / 1_000
  const spent = await meter()
  return {
    seconds,
    lastStartSeconds: (lastStart - firstDue) / 1_000,
    createRate,
    spent,
  }
}

/** Had the work come due while it was still being loaded, the clock would have measured the loading. */
function mustBeEarly(firstDue: number, tally: Tally): void {
  const aheadMs = firstDue - Date.now()
  if (aheadMs < 0 || tally.counted > 0) {
    throw new Error(`the work came due ${-aheadMs} ms before it was loaded: the machine is too busy to measure on`)
  }
}

/** Due times are compared with the database's clock; so is the end. */
function databaseNow(client: pg.Client): Promise<number> {
  return readNumber(client, 'select extract(epoch from clock_timestamp()) * 1000')
}
