import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

export interface OwnDatabase {
  /** For `BELFRY_DATABASE_URL`. */
  url: string
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

/** A database of the test's own on the server of the test run; it goes when the test is over. */
export async function createDatabase(): Promise<OwnDatabase> {
  const server = inject('postgres')
  const name = `server_${randomBytes(6).toString('hex')}`
  const once = async (text: string) => {
    const client = new pg.Client(server)
    await client.connect()
    await client.query(text).finally(() => client.end())
  }
  await once(`create database ${name}`)
  const pool = new pg.Pool({ ...server, database: name, max: 3 })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    await once(`drop database ${name} with (force)`)
  })
  const { user, password = '', host, port } = server
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  // The host may be the directory of a socket, which has no place in a URL but this one.
  const url = `postgresql://${login}@localhost:${port}/${name}?host=${encodeURIComponent(host)}`
  return { url, query: async (text, values) => (await pool.query(text, values)).rows }
}
