import { expect, onTestFinished, test } from 'vitest'
import { type HealthSource, startServer } from './index.ts'

async function setup(engine: () => HealthSource | null) {
  const server = await startServer({ engine, host: '127.0.0.1', port: 0 })
  onTestFinished(() => server.stop())
  return { get: (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`) }
}

const answering: HealthSource = { ping: async () => {} }
const silent: HealthSource = { ping: () => Promise.reject(new Error('connection refused by 10.0.0.7')) }

test('a node whose database answers is healthy', async () => {
  const t = await setup(() => answering)
  const answer = await t.get('/healthz')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({ status: 'ok' })
})

test('a node whose database does not answer says so as a problem, without telling where the database is', async () => {
  const t = await setup(() => silent)
  const answer = await t.get('/healthz')
  expect(answer.status).toBe(503)
  expect(answer.headers.get('content-type')).toMatch('application/problem+json')
  expect(answer.headers.get('retry-after')).toBe('1')
  const problem = await answer.text()
  expect(JSON.parse(problem)).toMatchObject({ code: 'database_unavailable', status: 503 })
  expect(problem).not.toContain('10.0.0.7')
})

test('a node that still waits for its database serves, and becomes healthy when it comes', async () => {
  let engine: HealthSource | null = null
  const t = await setup(() => engine)
  expect((await t.get('/healthz')).status).toBe(503)
  engine = answering
  expect((await t.get('/healthz')).status).toBe(200)
})

test('what is not there is answered as a problem too', async () => {
  const t = await setup(() => answering)
  const answer = await t.get('/nowhere?secret=1')
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ code: 'not_found', detail: 'there is no GET /nowhere' })
})
