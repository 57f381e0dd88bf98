import type { Belfry } from '@belfry/engine'
import type pg from 'pg'
import type { Api } from './apart.ts'
import { startBelfry } from './belfry.ts'
import { connect } from './database.ts'
import { type Apart, startWorkerSide } from './outside-process.ts'
import type { WorkerAsk, WorkerTold } from './worker-side.ts'
import type { Setting } from './workload.ts'

/** A node with its API in this process, and workers in another. */
export interface Remote {
  belfry: Belfry
  client: pg.Client
  api: Api
  workers: Apart<WorkerAsk, WorkerTold>
}

const KEY = 'a-key-that-only-this-benchmark-knows'

export async function withRemote<T>(setting: Setting, use: (remote: Remote) => Promise<T>): Promise<T> {
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const { startServer } = await import('@belfry/server')
  const server = await startServer({ belfry: () => belfry, adminKey: KEY, host: '127.0.0.1', port: 0 })
  const workers = startWorkerSide()
  try {
    return await use({ belfry, client, api: { port: server.port, key: KEY }, workers })
  } finally {
    workers.end()
    await server.stop()
    await belfry.stop()
    await client.end()
  }
}
