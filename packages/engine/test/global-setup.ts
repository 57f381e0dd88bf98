import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { lineLogger } from '../src/runtime/logger.ts'
import type { EmbeddedConnection } from '../src/store/embedded/answering.ts'
import { startEmbedded } from '../src/store/embedded/embedded-server.ts'
import { countedMoves, movesSchema, prepareToCount } from './watch-moves.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The one PostgreSQL of the test run. */
    postgres: EmbeddedConnection
    /** Its major version: a few tests ask for what only a newer one tells. */
    serverMajor: number
    /** Stands in the names of the schemas that tests make. */
    run: string
    /** Where the packages were built, or why they were not: only tests that start real processes need them. */
    build: { directory: string } | { problem: string }
  }
}

/**
 * One server and one build for the whole run. Nothing in it outlives the run, so it need not be durable.
 * `BELFRY_TEST_DATABASE_URL` takes another server instead, to see how Belfry does on an older PostgreSQL.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('build', await tryBuild())
  const run = randomBytes(4).toString('hex')
  project.provide('run', run)
  const moves = movesSchema(run)
  const given = process.env.BELFRY_TEST_DATABASE_URL
  if (given) {
    const connection = connectionOf(new URL(given))
    await provideServer(project, connection)
    await withClient(connection, (client) => prepareToCount(client, moves))
    return () =>
      withClient(connection, async (client) => {
        await reportMoves(client, moves, project)
        await dropSchemas(client, `test_${run}_`)
      })
  }
  const place = mkdtempSync(join(tmpdir(), 'belfry-test-'))
  const logger = lineLogger((line) => /^(warn|error)/.test(line) && console.error(line))
  const settings = {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    max_connections: '300',
    // Whoever drops or truncates a table looks through all of it; with an eighth of a large machine's memory that took most of the time.
    shared_buffers: '128MB',
    // A schema with statistics is none that the next test could have, and plans would depend on when they came.
    autovacuum: 'off',
    ...{ wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '8GB', checkpoint_timeout: '1h' },
  }
  const server = await startEmbedded({ dataDir: join(place, 'data'), logger, settings })
  await provideServer(project, server.connection)
  await withClient(server.connection, (client) => prepareToCount(client, moves))
  return async () => {
    try {
      await withClient(server.connection, (client) => reportMoves(client, moves, project))
    } finally {
      await server.stop()
      rmSync(place, { recursive: true, force: true })
    }
  }
}

async function provideServer(project: TestProject, connection: EmbeddedConnection): Promise<void> {
  project.provide('postgres', connection)
  await withClient(connection, async (client) => {
    const { rows } = await client.query<{ number: string }>(`select current_setting('server_version_num') as number`)
    project.provide('serverMajor', Math.floor(Number(rows[0]?.number) / 10_000))
  })
}

/** Those that tests gave back were kept for others. */
async function dropSchemas(client: pg.Client, prefix: string): Promise<void> {
  const found = await client.query<{ name: string }>(
    'select nspname::text as name from pg_namespace where starts_with(nspname, $1)',
    [prefix],
  )
  for (const { name } of found.rows) await client.query(`drop schema ${name} cascade`)
}

async function withClient(connection: EmbeddedConnection, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  await work(client).finally(() => client.end())
}

/** A refused move fails the run, also where the test went on; so does a listed one that all the tests together never made. */
async function reportMoves(client: pg.Client, schema: string, project: TestProject): Promise<void> {
  const { refused, unmade } = await countedMoves(client, schema)
  const all = await project.globTestFiles()
  const isWhole = project.vitest.state.getFiles().length === all.testFiles.length && !project.config.testNamePattern
  if (refused.length > 0)
    console.error(`Refused, as job/transitions.ts does not list it or a rule forbids it: ${refused.join('; ')}`)
  if (unmade.length > 0)
    console.error(`Listed in job/transitions.ts, and made by none of these tests: ${unmade.join('; ')}`)
  if (refused.length > 0 || (isWhole && unmade.length > 0)) process.exitCode = 1
}

function connectionOf({ hostname, port, username, password, pathname }: URL): EmbeddedConnection {
  return { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) }
}

async function tryBuild(): Promise<{ directory: string } | { problem: string }> {
  try {
    const script = new URL('../../../scripts/build.mjs', import.meta.url)
    const { build } = (await import(script.href)) as { build(): string }
    return { directory: build() }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
