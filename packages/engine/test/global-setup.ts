import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { lineLogger } from '../src/runtime/logger.ts'
import type { EmbeddedConnection } from '../src/store/embedded/answering.ts'
import { startEmbedded } from '../src/store/embedded/embedded-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The one PostgreSQL of the test run. */
    postgres: EmbeddedConnection
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
  const given = process.env.BELFRY_TEST_DATABASE_URL
  if (given) {
    project.provide('postgres', connectionOf(new URL(given)))
    return async () => {}
  }
  const place = mkdtempSync(join(tmpdir(), 'belfry-test-'))
  const logger = lineLogger((line) => /^(warn|error)/.test(line) && console.error(line))
  const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '300' }
  const server = await startEmbedded({ dataDir: join(place, 'data'), logger, settings })
  project.provide('postgres', server.connection)
  return async () => {
    await server.stop()
    rmSync(place, { recursive: true, force: true })
  }
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
