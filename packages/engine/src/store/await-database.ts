import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import { isOutage } from './database-errors.ts'

const RETRY_MS = 500
/** Said again so often while the database is away. */
const SAY_EVERY = 20

/** Does a step of a node's start, and again while the database is away: a node may be started before it. */
export async function awaitDatabase<Result>(logger: Logger, step: () => Promise<Result>): Promise<Result> {
  for (let tries = 0; ; tries++) {
    try {
      return await step()
    } catch (error) {
      if (!isOutage(error)) throw error
      if (tries % SAY_EVERY === 0) logger.warn('waiting for the database', { error })
      await pause(RETRY_MS)
    }
  }
}
