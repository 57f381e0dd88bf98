import type { BelfryOptions } from '@belfry/engine'
import type { StartOptions } from './start-options.ts'

/** How long running handlers and calls may go on once the node stops. */
export const DRAIN_MS = 10_000

export function engineOptions(options: StartOptions): BelfryOptions {
  const { dataDir, database, readDatabase, encryptionKey, allowPrivateTargets, roles } = options
  return {
    dataDir,
    drainMs: DRAIN_MS,
    allowPrivateTargets,
    roles,
    ...(database === undefined ? {} : { database }),
    ...(readDatabase === undefined ? {} : { readDatabase }),
    ...(encryptionKey === undefined ? {} : { encryptionKey }),
  }
}
