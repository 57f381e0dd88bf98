import pg from 'pg'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/pause.ts'
import { findPostmaster } from './postmaster.ts'

export interface EmbeddedConnection {
  host: string
  port: number
  user: string
  database: string
  password?: string
}

const POLL_MS = 15
const SAY_AFTER_MS = 5_000
/** A server that says it is ready and still cannot be reached for this long has lost its socket. */
const UNREACHABLE_MS = 3_000

/**
 * Waits until the server answers. Recovery after a crash may take minutes: as long as the process is there, we wait.
 * `unreachable` means that the server runs and nobody can connect to it (its socket was removed from under it).
 */
export async function waitForAnswer(
  connection: EmbeddedConnection,
  directory: string,
  { clock, logger, hasEnded }: { clock: Clock; logger: Logger; hasEnded: () => boolean },
): Promise<'answers' | 'gone' | 'unreachable'> {
  const startedAt = clock.now()
  let said = false
  let deafSince: number | null = null
  for (;;) {
    const outcome = await tryConnect(connection)
    if (outcome === 'answers') return 'answers'
    if (hasEnded()) return 'gone'

    const found = findPostmaster(directory)
    const now = clock.now()
    if (outcome === 'unreachable' && found?.status === 'ready') deafSince ??= now
    else deafSince = null
    if (deafSince !== null && now - deafSince > UNREACHABLE_MS) return 'unreachable'
    if (!said && now - startedAt > SAY_AFTER_MS) {
      said = true
      logger.info('the embedded database is still starting; after a crash it first repairs itself')
    }
    await pause(POLL_MS)
  }
}

async function tryConnect(connection: EmbeddedConnection): Promise<'answers' | 'starting' | 'unreachable'> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return 'answers'
  } catch (error) {
    const code = (error as { code?: string }).code ?? ''
    if (code === '3D000') {
      await createDatabase(connection)
      return 'starting'
    }
    // 57P01..57P03: shutting down, crashed, starting up. 53300: as many connections as allowed.
    if (code.startsWith('57P') || code === '53300') return 'starting'
    if (/^(ENOENT|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|)$/.test(code)) return 'unreachable'
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

async function createDatabase(connection: EmbeddedConnection): Promise<void> {
  const client = new pg.Client({ ...connection, database: 'postgres' })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(`create database ${client.escapeIdentifier(connection.database)}`)
  } catch (error) {
    // Another starter was quicker.
    if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error
  } finally {
    await client.end().catch(() => {})
  }
}
