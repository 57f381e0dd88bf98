import { Belfry, type Logger, SystemClock } from '@belfry/engine'
import { type Server, startServer } from '@belfry/server'
import { engineOptions } from './engine-options.ts'
import { portFailure } from './port.ts'
import type { StartOptions } from './start-options.ts'

export interface Running {
  url: string
  /** When it has stopped: null if it was told to, otherwise why it stopped by itself. */
  ended: Promise<Error | null>
  /** Takes nothing new, finishes or releases what runs, and closes everything. */
  stop(): Promise<void>
  /** Ends what belongs to it and is not this process, without letting it finish anything. */
  end(): Promise<void>
}

/** How long requests under way may still take. */
const REQUESTS_MS = 5_000

/**
 * Starts one node. It listens before the database is there, so that somebody who asks is told that it is waiting; where
 * others serve the same port, it first lets so much time pass to become ready, and takes no requests away from them.
 */
export async function startNode(
  options: StartOptions,
  adminKey: string,
  logger: Logger,
  readyFirstMs = 0,
): Promise<Running> {
  let belfry: Belfry | null = null
  const start = async (publicUrl: string): Promise<Belfry> => {
    belfry = await Belfry.start({ ...engineOptions(options), publicUrl, logger })
    return belfry
  }
  const starting = readyFirstMs > 0 ? start(options.publicUrl ?? `http://127.0.0.1:${options.port}`) : null
  if (starting) await within(readyFirstMs, starting)
  const server = await listen(options, adminKey, logger, () => belfry).catch(async (error: unknown) => {
    await starting?.then((engine) => engine.stop())
    throw error
  })
  const url = `http://127.0.0.1:${server.port}`
  const engine = await (starting ?? start(options.publicUrl ?? url)).catch(async (error: unknown) => {
    await server.stop()
    throw error
  })
  if (options.publicUrl === undefined) engine.setPublicUrl(url)
  return {
    url,
    ended: engine.ended,
    stop: async () => {
      await within(REQUESTS_MS, server.stop())
      await engine.stop()
    },
    end: async () => {},
  }
}

async function listen(
  options: StartOptions,
  adminKey: string,
  logger: Logger,
  belfry: () => Belfry | null,
): Promise<Server> {
  try {
    return await startServer({
      belfry,
      adminKey,
      port: options.port,
      logger,
      serves: options.roles.includes('api') ? 'everything' : 'health',
    })
  } catch (error) {
    throw portFailure(options.port, error)
  }
}

/** Waits for the work, but no longer: a caller who never finishes his request must not keep the runs from being released. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const clock = new SystemClock()
  let timer = { cancel: () => {} }
  const over = new Promise<void>((wake) => {
    timer = clock.timer(ms, wake)
  })
  await Promise.race([work, over])
  timer.cancel()
}
