import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { type Logger, silentLogger } from '../../runtime/logger.ts'
import type { EmbeddedConnection } from './answering.ts'
import { type EmbeddedServer, startEmbedded } from './embedded-server.ts'
import { findPostmaster } from './postmaster.ts'
import { ownIdentity } from './process-identity.ts'

const CHILD = fileURLToPath(new URL('../../../test/embedded-process.mjs', import.meta.url))
const place = realpathSync(mkdtempSync(join(tmpdir(), 'belfry-embedded-test-')))
const template = join(place, 'template')

beforeAll(async () => {
  const server = await startEmbedded({ dataDir: template, logger: silentLogger, settings: { fsync: 'off' } })
  await query(server.connection, 'create table kept (a int)')
  await server.stop()
})

afterAll(() => rmSync(place, { recursive: true, force: true }))

let directories = 0

/** A data directory with a cluster in it, and ways to use it from here and from other processes. */
function setup({ name = `data-${++directories}`, content = 'cluster' as 'cluster' | 'nothing' } = {}) {
  const dataDir = join(place, name)
  if (content === 'cluster') cpSync(template, dataDir, { recursive: true })
  const cluster = join(dataDir, 'postgres')
  const heard = hearing()
  const start = async (): Promise<EmbeddedServer> => {
    const server = await startEmbedded({ dataDir, logger: heard.logger, settings: { fsync: 'off' } })
    onTestFinished(() => server.stop())
    return server
  }
  return {
    dataDir,
    cluster,
    heard,
    start,
    startElsewhere: () => startElsewhere(dataDir),
    postmaster: () => findPostmaster(cluster),
  }
}

function hearing() {
  const waiting = new Map<string, () => void>()
  const messages: string[] = []
  const hear = (message: string) => {
    messages.push(message)
    waiting.get(message)?.()
  }
  const logger: Logger = { debug: hear, info: hear, warn: hear, error: hear }
  const next = (message: string) => new Promise<void>((heard) => waiting.set(message, heard))
  return { logger, messages, next }
}

async function startElsewhere(dataDir: string) {
  const build = inject('build')
  if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
  const module = join(build.directory, 'engine', 'dist', 'store', 'embedded', 'embedded-server.js')
  const child = spawn(process.execPath, [CHILD, module, dataDir], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the process ended with ${code}`))),
  ])) as [string]
  return { child, connection: JSON.parse(line) as EmbeddedConnection, tell: (word: string) => tell(child, word) }
}

async function tell(child: ChildProcess, word: string): Promise<unknown> {
  child.stdin?.write(`${word}\n`)
  const [code] = await once(child, 'exit')
  return code
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function query(connection: EmbeddedConnection, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('what was committed is there after a stop and a start, and a stop leaves nothing behind outside', async () => {
  const t = setup()
  const first = await t.start()
  await query(first.connection, 'insert into kept values (1)')
  await first.stop()
  expect(t.postmaster()).toBeNull()
  expect(existsSync(first.connection.host)).toBe(false)

  const second = await t.start()
  expect(await query(second.connection, 'select a from kept')).toEqual([{ a: 1 }])
})

test('acknowledged writes are durable unless a test asks otherwise', async () => {
  const t = setup()
  const server = await startEmbedded({ dataDir: t.dataDir, logger: silentLogger })
  onTestFinished(() => server.stop())
  const settings = await query(
    server.connection,
    `select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes') order by 1`,
  )
  expect(settings.map(({ setting }) => setting)).toEqual(['on', 'on', 'on'])
})

test('the directory may be new, have spaces and quotes in its name, and be longer than a socket path can be', async () => {
  const t = setup({ name: `it's a "long" $HOME \`name\` ${'x'.repeat(150)}`, content: 'nothing' })
  const server = await t.start()
  expect(await query(server.connection, 'select current_database() as name')).toEqual([{ name: 'belfry' }])
})

test('only the owner can reach the server: its socket lies in a closed directory and no port is open', async () => {
  const t = setup()
  const server = await t.start()
  expect(await query(server.connection, 'show listen_addresses')).toEqual([{ listen_addresses: '' }])
  expect(statSync(server.connection.host).mode & 0o077).toBe(0)
})

test('a server whose Belfry was killed is taken over, and stopped at the end', async () => {
  const t = setup()
  const other = await t.startElsewhere()
  await query(other.connection, 'insert into kept values (1)')
  const orphan = t.postmaster()?.pid
  await kill(other.child)

  const server = await t.start()
  expect(t.postmaster()?.pid).toBe(orphan)
  expect(await query(server.connection, 'select a from kept')).toEqual([{ a: 1 }])
  await server.stop()
  expect(t.postmaster()).toBeNull()
})

test('after both Belfry and the server were killed everything acknowledged is there', async () => {
  const t = setup()
  const other = await t.startElsewhere()
  await query(other.connection, 'insert into kept select generate_series(1, 1000)')
  const pid = t.postmaster()?.pid ?? 0
  await kill(other.child)
  process.kill(pid, 'SIGKILL')

  const server = await t.start()
  expect(await query(server.connection, 'select count(*)::int as kept from kept')).toEqual([{ kept: 1000 }])
})

test('a server that is killed while Belfry lives is started again at the same address', async () => {
  const t = setup()
  const server = await t.start()
  await query(server.connection, 'insert into kept values (1)')
  const [before, address] = [t.postmaster()?.pid ?? 0, server.connection]
  const back = t.heard.next('the embedded database is back')
  process.kill(before, 'SIGKILL')
  await back
  expect(t.postmaster()?.pid).not.toBe(before)
  expect(server.connection).toEqual(address)
  expect(await query(address, 'select a from kept')).toEqual([{ a: 1 }])
})

test('two that start at the same time on an empty directory share one server, and the last to stop stops it', async () => {
  const t = setup({ content: 'nothing' })
  const [one, two] = await Promise.all([t.startElsewhere(), t.startElsewhere()])
  expect(one.connection).toEqual(two.connection)
  const pid = t.postmaster()?.pid
  expect(await one.tell('stop')).toBe(0)
  expect(t.postmaster()?.pid).toBe(pid)
  expect(await query(two.connection, 'select 1 as a')).toEqual([{ a: 1 }])
  expect(await two.tell('stop')).toBe(0)
  expect(t.postmaster()).toBeNull()
})

test('a process that exits without stopping takes the server down with it', async () => {
  const t = setup()
  const other = await t.startElsewhere()
  expect(await other.tell('exit')).toBe(0)
  // The server ends by itself; whoever starts now waits for that and gets a new one.
  const server = await t.start()
  expect(await query(server.connection, 'select 1 as a')).toEqual([{ a: 1 }])
})

test('a dead user whose process number was given to somebody else does not keep the server running', async () => {
  const t = setup()
  const server = await t.start()
  const stranger = { ...ownIdentity(), startedAt: '1' }
  writeFileSync(join(t.dataDir, 'users', 'dead.user'), JSON.stringify(stranger))
  await server.stop()
  expect(t.postmaster()).toBeNull()
})

test('a pid file left behind whose number belongs to another process now does not hinder the start', async () => {
  const t = setup()
  writeFileSync(join(t.cluster, 'postmaster.pid'), `${process.pid}\n${t.cluster}\n1\n5432\n/tmp\n\n 1 1\nready   \n`)
  const server = await t.start()
  expect(await query(server.connection, 'select 1 as a')).toEqual([{ a: 1 }])
})

test('a running server whose socket was removed is replaced by one that can be reached', async () => {
  const t = setup()
  const other = await t.startElsewhere()
  const deaf = t.postmaster()?.pid
  await kill(other.child)
  rmSync(other.connection.host, { recursive: true })
  const server = await t.start()
  expect(t.postmaster()?.pid).not.toBe(deaf)
  expect(await query(server.connection, 'select 1 as a')).toEqual([{ a: 1 }])
})

test('over a loopback port a password is asked for', async () => {
  const t = setup()
  writeFileSync(join(t.dataDir, 'endpoint.json'), JSON.stringify({ kind: 'port', port: await freePort() }))
  const { connection } = await t.start()
  expect(connection.host).toBe('127.0.0.1')
  expect(await query(connection, 'select 1 as a')).toEqual([{ a: 1 }])
  await expect(query({ ...connection, password: 'wrong' }, 'select 1')).rejects.toMatchObject({ code: '28P01' })
})

test('a cluster of another major version is refused with both versions', async () => {
  const t = setup()
  writeFileSync(join(t.cluster, 'PG_VERSION'), '17\n')
  await expect(t.start()).rejects.toMatchObject({
    code: 'embedded_database',
    message: expect.stringMatching(/made by PostgreSQL 17.*brings PostgreSQL 18/),
  })
  expect(readdirSync(join(t.dataDir, 'users'))).toEqual([])
})

test('a data directory that is a file is refused', async () => {
  const t = setup({ content: 'nothing' })
  writeFileSync(t.dataDir, '')
  await expect(t.start()).rejects.toMatchObject({
    code: 'embedded_database',
    message: expect.stringMatching(/not a directory/),
  })
})

test('what PostgreSQL says about a start that fails is told', async () => {
  const t = setup()
  writeFileSync(join(t.cluster, 'custom.conf'), 'shared_buffers = nonsense\n')
  await expect(t.start()).rejects.toMatchObject({ message: expect.stringMatching(/shared_buffers/) })
})

test('a cluster that was only half made when its maker was killed is made anew', async () => {
  const t = setup({ content: 'nothing' })
  mkdirSync(join(t.dataDir, 'postgres.draft-0000', 'base'), { recursive: true })
  await t.start()
  expect(readdirSync(t.dataDir).filter((name) => name.includes('draft'))).toEqual([])
  expect(readFileSync(join(t.cluster, 'PG_VERSION'), 'utf8').trim()).toBe('18')
})

function freePort(): Promise<number> {
  return new Promise((found) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => found(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
