import { randomBytes } from 'node:crypto'
import { once as event } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Belfry, silentLogger } from '@belfry/engine'
import { startServer } from '@belfry/server'
import express from 'express'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createOnceTable, expressReceiver, later, once, report } from '../src/receiver/index.ts'

interface Keys {
  items: { secret: string }[]
}
interface Run {
  status: string
  attempt: number
  result: unknown
  attempts: { status: string; failureClass: string | null }[]
}

/** A node with its server, and a database of the receiver's own. */
async function setup() {
  const [schema, own] = ['belfry', 'shop'].map((name) => `${name}_${randomBytes(6).toString('hex')}`)
  const database = inject('postgres')
  const belfry = await Belfry.start({
    database,
    schema: schema as string,
    logger: silentLogger,
    allowPrivateTargets: true,
  })
  const adminKey = `admin_${randomBytes(24).toString('hex')}`
  const server = await startServer({ belfry: () => belfry, adminKey, host: '127.0.0.1', port: 0, logger: silentLogger })
  belfry.setPublicUrl(`http://127.0.0.1:${server.port}`)
  const pool = new pg.Pool({ ...database, max: 8, options: `-c search_path=${own}` })
  await pool.query(`create schema ${own}`)
  await createOnceTable(pool)
  await pool.query('create table mails (to_whom text, attempt int)')
  onTestFinished(async () => {
    await server.stop()
    await belfry.stop()
    await pool.query(`drop schema ${schema} cascade; drop schema ${own} cascade`)
    await pool.end()
  })
  const call = async <Body>(method: string, path: string, body?: object): Promise<Body> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true)
    return (await answer.json()) as Body
  }
  const secrets = async () => (await call<Keys>('GET', '/v1/signing-keys')).items.map(({ secret }) => secret)
  /** Creates a job that calls the URL now, and waits for the end of its run. */
  const performed = async (url: string, more: object = {}): Promise<Run> => {
    const { jobId } = await call<{ jobId: string }>('POST', '/v1/jobs', {
      http: { url, body: { to: 'ada@example.org' } },
      retry: { maxAttempts: 4, backoff: { type: 'fixed', initial: '10ms' } },
      ...more,
    })
    const { items } = await call<{ items: { id: string }[] }>('GET', `/v1/jobs/${jobId}/runs`)
    return call<Run>('GET', `/v1/runs/${items[0]?.id}?waitMs=15000`)
  }
  return { call, pool, secrets, performed }
}

async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await event(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a receiver whose answers are lost after its commit is called again, and has its effect once', async () => {
  const t = await setup()
  const [secret = ''] = await t.secrets()
  const outcomes: boolean[] = []
  const receiver = expressReceiver({ secret }, async (call) => {
    const tx = await t.pool.connect()
    try {
      await tx.query('begin')
      const { alreadyDone, result } = await once(tx, call.runId, async () => {
        const { to } = call.json<{ to: string }>()
        await tx.query('insert into mails values ($1, $2)', [to, call.attempt])
        return { sentInAttempt: call.attempt }
      })
      await tx.query('commit')
      outcomes.push(alreadyDone)
      return result
    } catch (error) {
      await tx.query('rollback')
      throw error
    } finally {
      tx.release()
    }
  })
  let calls = 0
  const app = express()
  app.post('/mails', (request, response) => {
    calls++
    return receiver(request, calls <= 2 ? cutOff(response) : response)
  })
  const run = await t.performed(`${await served(app)}/mails`)
  expect(run).toMatchObject({ status: 'succeeded', attempt: 3 })
  expect(run.attempts.map(({ status, failureClass }) => failureClass ?? status)).toEqual([
    'network',
    'network',
    'succeeded',
  ])
  expect(outcomes).toEqual([false, true, true])
  expect((await t.pool.query('select * from mails')).rows).toEqual([{ to_whom: 'ada@example.org', attempt: 1 }])
})

test('while the signing key is rotated, receivers with the old and with the new secret both understand', async () => {
  const t = await setup()
  const [before = ''] = await t.secrets()
  await t.call('POST', '/v1/signing-keys/rotate', { overlap: '1h' })
  const after = (await t.secrets()).find((secret) => secret !== before) as string
  for (const secret of [before, after]) {
    const url = await served(expressReceiver({ secret }, (call) => call.json()))
    expect(await t.performed(url)).toMatchObject({ status: 'succeeded', attempt: 1 })
  }
  const other = `whsec_${randomBytes(32).toString('base64')}`
  const url = await served(expressReceiver({ secret: other }, () => 'never'))
  const run = await t.performed(url)
  expect(run).toMatchObject({ status: 'failed', attempt: 1, attempts: [{ failureClass: 'http_4xx' }] })
})

test('a receiver that answers later ends the run by its report', async () => {
  const t = await setup()
  const [secret = ''] = await t.secrets()
  const reports: Promise<string>[] = []
  const url = await served(
    expressReceiver({ secret }, (call) => {
      const isFirst = call.attempt === 1
      const outcome = isFirst
        ? ({ status: 'failed', error: 'disk full' } as const)
        : ({ status: 'succeeded', result: { rows: 42 } } as const)
      reports.push(report(call.callbackUrl as string, outcome))
      return later()
    }),
  )
  const run = await t.performed(url, { timeout: '1m' })
  expect(run).toMatchObject({ status: 'succeeded', attempt: 2, result: { rows: 42 } })
  expect(await Promise.all(reports)).toEqual(['ok', 'ok'])
})

/** A response that is lost on its way: the connection breaks instead. */
function cutOff(response: ServerResponse): ServerResponse {
  response.end = (() => response.destroy()) as unknown as ServerResponse['end']
  return response
}
