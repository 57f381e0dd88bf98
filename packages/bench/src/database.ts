import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'

/** The one PostgreSQL that all subjects share, each in a database of its own, one after the other. */
export interface Server {
  version: string
  /** Makes an empty database, hands over its address, and drops it afterwards. */
  withFreshDatabase<T>(use: (databaseUrl: string) => Promise<T>): Promise<T>
  stop(): Promise<void>
}

/** Takes the server of `BELFRY_DATABASE_URL` when that is set, else starts an embedded one that vanishes afterwards. */
export async function openServer(givenUrl: string | undefined): Promise<Server> {
  if (givenUrl) return connectServer(givenUrl, async () => {})
  const { startEmbedded } = await import('@belfry/engine')
  const dataDir = await mkdtemp(join(tmpdir(), 'belfry-bench-'))
  // PostgreSQL refuses to run as root; the user it runs as instead must be able to come in.
  await chmod(dataDir, 0o755)
  const quiet = { debug() {}, info() {}, warn: console.warn, error: console.error }
  // It counts the statements of every subject alike.
  const settings = { shared_preload_libraries: 'pg_stat_statements' }
  const embedded = await startEmbedded({ dataDir, logger: quiet, settings })
  const { host, port, user, password, database } = embedded.connection
  const credentials = password ? `${user}:${encodeURIComponent(password)}` : user
  const url = `postgres://${credentials}@${encodeURIComponent(host)}:${port}/${database}`
  return connectServer(url, async () => {
    await embedded.stop()
    await rm(dataDir, { recursive: true, force: true })
  })
}

async function connectServer(url: string, close: () => Promise<void>): Promise<Server> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const version = (await admin.query<{ v: string }>(`select current_setting('server_version') as v`)).rows[0]?.v ?? ''
  let made = 0
  return {
    version,
    async withFreshDatabase(use) {
      const name = `belfry_bench_${process.pid}_${made++}`
      await admin.query(`create database ${name}`)
      try {
        // What the subject before left in memory is written out now, not while this one is being timed.
        await admin.query('checkpoint')
        return await use(withDatabase(url, name))
      } finally {
        await admin.query(`drop database if exists ${name} with (force)`)
      }
    },
    async stop() {
      await admin.end()
      await close()
    },
  }
}

/** The same server, another database. */
function withDatabase(url: string, database: string): string {
  const address = new URL(url)
  address.pathname = `/${database}`
  return address.toString()
}

export async function connect(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  return client
}

/** One number from the database. */
export async function readNumber(client: pg.Client, text: string, values: unknown[] = []): Promise<number> {
  const { rows } = await client.query<[unknown]>({ text, values, rowMode: 'array' })
  return Number(rows[0]?.[0])
}

/** Asks again and again until the number has reached what is expected; what is missing after the deadline is lost. */
export async function waitUntilReached(
  read: () => Promise<number>,
  expected: number,
  options: { what: string; deadlineMs: number },
): Promise<void> {
  const deadline = performance.now() + options.deadlineMs
  for (;;) {
    const found = await read()
    if (found >= expected) return
    if (performance.now() > deadline)
      throw new Error(`${options.what}: only ${found} of ${expected} after ${options.deadlineMs} ms`)
    await new Promise((wake) => setTimeout(wake, 5))
  }
}
