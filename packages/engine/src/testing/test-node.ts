import type pg from 'pg'
import { Engine } from '../node/engine.ts'
import { type Readers, startReaders } from '../readers.ts'
import { type Instant, ManualClock } from '../runtime/clock.ts'
import { type Logger, silentLogger } from '../runtime/logger.ts'
import { seededRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { prepareSchema } from '../store/prepare-schema.ts'
import { followManualTime, manualTime } from './manual-time.sql.ts'

export interface TestNodeOptions {
  database: string | pg.ClientConfig
  schema: string
  shards: number
  start: Instant
  seed: number
  leaseMs: number
  cancelGraceMs: number
  /** 400 unless given. */
  historyDays?: number
  logger?: Logger
  /** The edition of zone data that it plans by; the runtime's unless given. */
  zoneData?: string
}

export interface TestNode {
  engine: Engine
  db: Database
  clock: ManualClock
  shards: number
  readers: Readers
}

const HISTORY_DAYS = 400
/** A test kit starts often; a day that is missing is made when it is needed. */
const DAYS_AHEAD = 2
/** Nodes of one test read each other's tokens. */
const VAULT_KEY = Buffer.alloc(32, 1)

/** A node whose loops do not run and whose time stands still: whoever holds it makes every step. */
export async function startTestNode(options: TestNodeOptions): Promise<TestNode> {
  const { database, schema, seed, leaseMs, cancelGraceMs, historyDays = HISTORY_DAYS, logger = silentLogger } = options
  const clock = new ManualClock(options.start)
  const db = new Database({ connection: manualTime(database, clock), schema, logger })
  try {
    const { shards, missingWall } = await prepareSchema(db, options.shards, logger)
    await followManualTime(db)
    const engine = new Engine({
      db,
      clock,
      random: seededRandom(seed),
      logger,
      shards,
      leaseMs,
      cancelGraceMs,
      historyDays,
      daysAhead: DAYS_AHEAD,
      vaultKey: VAULT_KEY,
      ...(options.zoneData === undefined ? {} : { zoneData: options.zoneData }),
    })
    await engine.partitioner.ensure()
    const readers = startReaders({ schema, logger, readDatabase: null }, database, missingWall === null)
    return { engine, db, clock, shards, readers }
  } catch (error) {
    await db.close()
    throw error
  }
}
