import { randomBytes } from 'node:crypto'
import { Belfry, silentLogger } from '@belfry/engine'
import { startServer } from '@belfry/server'
import type pg from 'pg'
import { inject } from 'vitest'
import { createDatabase, today } from '../../engine/test/database.ts'
import { BelfryClient } from '../src/index.ts'
import type { ConnectionOptions } from '../src/transport.ts'

export interface TestServer {
  belfry: Belfry
  url: string
  port: number
  adminKey: string
  /** Speaks with the installation's key, unless told otherwise. */
  client(options?: Partial<ConnectionOptions>): BelfryClient
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
  stop(): Promise<void>
}

/** A node with its HTTP server, on a schema of its own. */
export async function startTestServer(): Promise<TestServer> {
  const database = inject('postgres')
  const { schema, query, drop } = await createDatabase({ days: today() })
  const belfry = await Belfry.start({ database, schema, logger: silentLogger, allowPrivateTargets: true })
  const adminKey = `admin_${randomBytes(24).toString('hex')}`
  const server = await startServer({ belfry: () => belfry, adminKey, host: '127.0.0.1', port: 0, logger: silentLogger })
  const url = `http://127.0.0.1:${server.port}`
  return {
    belfry,
    url,
    port: server.port,
    adminKey,
    client: (options = {}) => new BelfryClient({ url, key: adminKey, ...options }),
    query,
    stop: async () => {
      await server.stop()
      await belfry.stop()
      await drop()
    },
  }
}
