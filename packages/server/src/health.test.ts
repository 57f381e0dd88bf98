import { expect, onTestFinished, test } from 'vitest'
import { createApp } from './create-app.ts'
import type { Service } from './service.ts'

async function setup(service: () => Partial<Service> | null) {
  const whole = () => {
    const found = service()
    return found && ({ endLeaseCalls: () => {}, ...found } as Service)
  }
  const app = await createApp({ service: whole, adminKey: null })
  onTestFinished(() => app.close())
  return { get: (url: string) => app.inject({ url }) }
}

const answering = { ping: async () => {} }
const silent = { ping: () => Promise.reject(new Error('connection refused by 10.0.0.7')) }

test('a node whose database answers is healthy', async () => {
  const t = await setup(() => answering)
  const answer = await t.get('/healthz')
  expect(answer.statusCode).toBe(200)
  expect(answer.json()).toEqual({ status: 'ok' })
})

test('a node whose database does not answer says so as a problem, without telling where the database is', async () => {
  const t = await setup(() => silent)
  const answer = await t.get('/healthz')
  expect(answer.statusCode).toBe(503)
  expect(answer.headers['content-type']).toMatch('application/problem+json')
  expect(answer.headers['retry-after']).toBe('1')
  expect(answer.json()).toMatchObject({ code: 'database_unavailable', status: 503 })
  expect(answer.body).not.toContain('10.0.0.7')
})

test('a node that still waits for its database serves, and becomes healthy when it comes', async () => {
  let service: Partial<Service> | null = null
  const t = await setup(() => service)
  expect((await t.get('/healthz')).statusCode).toBe(503)
  service = answering
  expect((await t.get('/healthz')).statusCode).toBe(200)
})

test('a node that is not ready says what stands in its way', async () => {
  const found = { ready: false, checks: [{ name: 'reader role', ok: false, detail: 'it cannot be made' }] }
  const t = await setup(() => ({ readiness: async () => found }))
  const answer = await t.get('/readyz')
  expect(answer.statusCode).toBe(503)
  expect(answer.json()).toEqual(found)
})
