import { Belfry, type Logger } from '@belfry/engine'
import { type Server, startServer } from '@belfry/server'
import { type StartOptions, UsageError } from './options.ts'

export interface Running {
  url: string
  /** Takes nothing new, finishes or releases what runs, and closes everything. */
  stop(): Promise<void>
}

/** Starts one node. It listens before the database is there, so that somebody who asks is told that it is waiting. */
export async function start(options: StartOptions, logger: Logger): Promise<Running> {
  const { port, dataDir, database } = options
  let belfry: Belfry | null = null
  const server = await listen(port, () => belfry)
  try {
    belfry = await Belfry.start({ dataDir, ...(database === undefined ? {} : { database }), logger })
  } catch (error) {
    await server.stop()
    throw error
  }
  const engine = belfry
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop: async () => {
      await server.stop()
      await engine.stop()
    },
  }
}

async function listen(port: number, engine: () => Belfry | null): Promise<Server> {
  try {
    return await startServer({ engine, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new UsageError(`port ${port} is used by another program; set PORT to another one (0 picks a free port)`)
    }
    if (code === 'EACCES')
      throw new UsageError(`port ${port} is not allowed for this user; set PORT to one from 1024 up`)
    throw error
  }
}
