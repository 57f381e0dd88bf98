import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry, type BelfryError, type BelfryOptions } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'
import { refusalOf } from './setup.ts'

const CALLER = { tenantId: 1, tenant: 'default', actor: 'test' }

/** Nodes in one schema of their own. */
async function setup() {
  const postgres = inject('postgres')
  const { schema, pool, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const start = async (options: BelfryOptions = {}) => {
    const belfry = await Belfry.start({ database: postgres, schema, shards: 4, ...options })
    onTestFinished(() => belfry.stop())
    return belfry
  }
  return { start, pool, postgres }
}

test('only a node that promotes makes runs of due jobs; one that does not serves its handlers all the same', async () => {
  const { start } = await setup()
  const api = await start({ roles: ['api'] })
  const done = new Promise((resolve) => api.handle('q', (run) => resolve(run.payload)))
  const { jobId, nextRunAt } = await api.tenant(CALLER).jobs.create({ queue: 'q', delay: '1s', payload: 7 })
  // Two pulses after it was due, it would have been promoted by whoever promotes.
  const pulsedAt = async () => Number((await api.nodes())[0]?.pulsedAt)
  await expect.poll(pulsedAt).toBeGreaterThan(Number(nextRunAt) + 2_000)
  expect(await api.tenant(CALLER).jobs.get(jobId)).toMatchObject({ lastRun: null, nextRunAt })
  const promoter = await start({ roles: ['promoter'], publicUrl: 'https://belfry.example.com/' })
  expect(await done).toBe(7)
  const nodes = async () => (await promoter.nodes()).map(({ roles, address }) => [roles, address])
  await expect.poll(nodes).toEqual([
    [['api'], null],
    [['promoter'], 'https://belfry.example.com'],
  ])
})

test('lists come from the read database and say how old they are, single look-ups from the database itself', async () => {
  const { start, postgres } = await setup()
  // The same server under another name: what a replica would answer.
  const belfry = await start({ readDatabase: { ...postgres, application_name: 'replica' } })
  const tenant = belfry.tenant(CALLER)
  const { jobId } = await tenant.jobs.create({ queue: 'q', delay: '1h' })
  const page = await tenant.jobs.list()
  expect(page.items.map((job) => job.jobId)).toEqual([jobId])
  expect(Math.abs(Number(page.asOf) - Date.now())).toBeLessThan(60_000)
  expect(await (await start()).tenant(CALLER).jobs.list()).not.toHaveProperty('asOf')
  const away = await start({ readDatabase: { ...postgres, host: '127.0.0.1', port: 1 } })
  expect((await away.tenant(CALLER).jobs.get(jobId)).jobId).toBe(jobId)
  expect((await refusalOf(away.tenant(CALLER).jobs.list())).code).toBe('database_unavailable')
  const { ready, checks } = await away.readiness()
  expect(ready).toBe(true)
  expect(checks.find(({ name }) => name === 'read database')).toMatchObject({ ok: false })
})

test('nodes without a key of their own agree on one; another key than the first is refused', async () => {
  const { start, postgres } = await setup()
  const nodes = await Promise.all([start(), start(), start()])
  await nodes[0]?.tenant(CALLER).secrets.put('s', 'value')
  const { ref } = await nodes[1]
    .tenant(CALLER)
    .payloads.put(Buffer.from('hello'), 'text/plain')
    .then(({ payloadRef }) => ({ ref: payloadRef }))
  expect((await nodes[2].tenant(CALLER).payloads.get(ref))?.bytes.toString()).toBe('hello')
  const { checks } = await nodes[0].readiness()
  expect(checks.find(({ name }) => name === 'encryption key')).toMatchObject({ ok: false, detail: /database/ as never })
  const other = randomBytes(32).toString('base64')
  await expect(start({ database: postgres, encryptionKey: other })).rejects.toThrow(/encryptionKey/)
  await expect(start({ encryptionKey: 'short' })).rejects.toThrow(/encryptionKey/)
})

test('the embedded database gets a key beside it that only its owner reads, and keeps it', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'belfry-key-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const first = await Belfry.start({ dataDir })
  const { payloadRef } = await first.tenant(CALLER).payloads.put(Buffer.from('hello'), 'text/plain')
  expect((await first.readiness()).checks.every(({ ok }) => ok)).toBe(true)
  await first.stop()
  const path = join(dataDir, 'encryption.key')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  const key = await readFile(path, 'utf8')
  const again = await Belfry.start({ dataDir })
  expect((await again.tenant(CALLER).payloads.get(payloadRef))?.bytes.toString()).toBe('hello')
  await again.stop()
  expect(await readFile(path, 'utf8')).toBe(key)
})

test('options of the service that cannot be meant are refused by name', async () => {
  for (const [options, path] of [
    [{ roles: [] }, 'roles'],
    [{ roles: ['promotor'] }, 'roles'],
    [{ roles: 'api' }, 'roles'],
    [{ publicUrl: 'belfry.example.com' }, 'publicUrl'],
    [{ publicUrl: 'ftp://x' }, 'publicUrl'],
    [{ allowPrivateTargets: 1 }, 'allowPrivateTargets'],
    [{ readDatabase: '' }, 'readDatabase'],
    [{ readDatabase: 'postgres://replica/x' }, 'readDatabase'],
    [{ encryptionKey: '' }, 'encryptionKey'],
  ] as const) {
    const error = await Belfry.start(options as never).catch((thrown: Error) => thrown)
    expect(error, JSON.stringify(options)).toMatchObject({ code: 'invalid_option' })
    expect((error as BelfryError).complaints[0]?.path).toBe(path)
  }
})

test('a callback that nobody is waiting for, or that was made up, is not found', async () => {
  const { start } = await setup()
  const belfry = await start()
  for (const token of ['', 'x', '\0', 'a.b.c', 'é'.repeat(5_000)])
    expect((await refusalOf(belfry.completeCallback(token, { status: 'succeeded' }))).code).toBe('not_found')
  expect(() => belfry.setPublicUrl('nowhere')).toThrow(/address/)
})
