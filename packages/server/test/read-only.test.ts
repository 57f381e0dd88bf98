import { expect, test } from 'vitest'
import { createDatabase } from './database.ts'
import { NodeProcess } from './node-process.ts'

const KEY = `admin_${'k'.repeat(32)}`
const WHY = 'the database takes no writes: it is read-only'

/** A node on a database that refuses writes as soon as the test says so, as after a failover to the wrong side. */
async function setup() {
  const database = await createDatabase()
  const node = new NodeProcess({ BELFRY_DATABASE_URL: database.url, BELFRY_ADMIN_KEY: KEY })
  const url = await node.url
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const answer = await fetch(`${url}${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body: await answer.json() }
  }
  /** A session keeps what its database was like when it began: those that are open are ended. */
  const forbidWrites = () =>
    database.query(`do $$ begin
      execute format('alter database %I set default_transaction_read_only = on', current_database());
      perform pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
    end $$`)
  const allowWrites = () =>
    database.query(`begin read write; do $$ begin
      execute format('alter database %I reset default_transaction_read_only', current_database()); end $$; commit`)
  return { node, call, forbidWrites, allowWrites }
}

test('a node whose database is read-only is neither healthy nor ready, refuses changes, and recovers by itself', async () => {
  const t = await setup()
  const health = async () => [(await t.call('GET', '/healthz')).status, (await t.call('GET', '/readyz')).status]
  expect(await health()).toEqual([200, 200])
  const created = await t.call('POST', '/v1/jobs', { queue: 'work', every: '1h' })
  const { jobId } = created.body as { jobId: string }

  await t.forbidWrites()
  await expect.poll(health).toEqual([503, 503])
  expect(await t.call('GET', '/healthz')).toMatchObject({
    status: 503,
    retryAfter: '1',
    body: { type: 'urn:belfry:problem:database_unavailable', detail: WHY },
  })
  const { body } = await t.call('GET', '/readyz')
  expect(body).toMatchObject({
    ready: false,
    checks: expect.arrayContaining([{ name: 'database', ok: false, detail: WHY }]),
  })
  for (const action of ['pause', 'trigger', 'cancel']) {
    expect(await t.call('POST', `/v1/jobs/${jobId}/${action}`, {})).toMatchObject({
      status: 503,
      retryAfter: '1',
      body: { type: 'urn:belfry:problem:database_unavailable' },
    })
  }
  // What was written is still there to be looked at.
  expect(await t.call('GET', `/v1/jobs/${jobId}`)).toMatchObject({ status: 200, body: { status: 'active' } })

  await t.allowWrites()
  await expect.poll(health).toEqual([200, 200])
  expect((await t.call('POST', `/v1/jobs/${jobId}/pause`, {})).status).toBe(200)
  expect(t.node.endedByItself).toBe(false)
})
