import type { HttpSettings } from '../executors/http/http-executor.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Random } from '../runtime/random.ts'
import type { Role } from '../shards/roles.ts'
import type { Database } from '../store/database.ts'
import type { SchemaVersion } from '../store/schema-state.sql.ts'

/** What a node is composed of, and what it is told. */
export interface EngineDeps {
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  shards: number
  leaseMs: number
  cancelGraceMs: number
  historyDays: number
  /** Days of history that are made before they come. */
  daysAhead?: number
  /** All unless given. */
  roles?: readonly Role[]
  /** Where this node is reached, for people who look at the fleet. */
  address?(): string | null
  /** What is sealed in the database is sealed with it. A made one that nobody else knows unless given. */
  vaultKey?: Uint8Array
  allowPrivateTargets?: boolean
  /** What callback URLs begin with. */
  publicUrl?(): string
  http?: HttpSettings
  /** Told with each pulse: a newer program may have changed the schema meanwhile. */
  onSchema?(found: SchemaVersion): void
  /** The edition of zone data to plan by; the runtime's unless given. */
  zoneData?: string
}
