import type { BelfryError } from '@belfry/engine'
import type { FastifyReply } from 'fastify'
import { expect, test } from 'vitest'
import { Limiter } from './rate-limit.ts'
import type { Service } from './service.ts'

type Quotas = { requestsPerSecond?: number | null; createsPerSecond?: number | null }

function setup(quotas: Quotas) {
  let now = 1_000_000
  const limiter = new Limiter({ now: () => now } as never)
  const service = { admin: { tenants: { quotasOf: async () => quotas } } } as unknown as Service
  const answer = (headers: Record<string, string>) =>
    ({ header: (name: string, value: string) => Object.assign(headers, { [name]: value }) }) as unknown as FastifyReply
  const attempt = async (work: (reply: FastifyReply) => unknown) => {
    const headers: Record<string, string> = {}
    try {
      await work(answer(headers))
      return { code: 'ok', headers }
    } catch (error) {
      return { code: (error as BelfryError).code, headers }
    }
  }
  return {
    quotas,
    pass: (ms: number) => {
      now += ms
    },
    ask: (tenantId = 1) => attempt((reply) => limiter.admit(service, { tenantId }, reply)),
    create: async (count: number, tenantId = 1) =>
      attempt(async (reply) => {
        await limiter.admit(service, { tenantId }, reply)
        limiter.takeCreates({ tenantId }, count, reply)
      }),
  }
}

test('a tenant without limits is never held up, and its answers say nothing of limits', async () => {
  const t = setup({ requestsPerSecond: null, createsPerSecond: null })
  for (let i = 0; i < 1_000; i++) expect((await t.ask()).code).toBe('ok')
  expect((await t.create(10_000)).headers).toEqual({})
})

test('what is left is counted down, and whoever comes too early is told when to come again', async () => {
  const t = setup({ requestsPerSecond: 2 })
  expect((await t.ask()).headers).toEqual({ 'ratelimit-policy': '"requests";q=2;w=1', ratelimit: '"requests";r=1;t=1' })
  expect((await t.ask()).headers.ratelimit).toBe('"requests";r=0;t=1')
  const refused = await t.ask()
  expect(refused).toMatchObject({
    code: 'rate_limited',
    headers: { 'retry-after': '1', ratelimit: '"requests";r=0;t=1' },
  })
  t.pass(500)
  expect((await t.ask()).code).toBe('ok')
  expect((await t.ask()).code).toBe('rate_limited')
})

test('tenants do not use up each other’s', async () => {
  const t = setup({ requestsPerSecond: 1 })
  expect([(await t.ask(1)).code, (await t.ask(1)).code, (await t.ask(2)).code]).toEqual(['ok', 'rate_limited', 'ok'])
})

test('nothing is saved up beyond a second', async () => {
  const t = setup({ requestsPerSecond: 3 })
  await t.ask()
  t.pass(60_000)
  const codes = []
  for (let i = 0; i < 4; i++) codes.push((await t.ask()).code)
  expect(codes).toEqual(['ok', 'ok', 'ok', 'rate_limited'])
})

test('a batch larger than a second’s worth is let through once and paid off', async () => {
  const t = setup({ createsPerSecond: 100 })
  expect((await t.create(1_000)).code).toBe('ok')
  const refused = await t.create(1)
  expect(refused).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '10' } })
  t.pass(8_900)
  expect((await t.create(1)).code).toBe('rate_limited')
  t.pass(200)
  expect((await t.create(1)).code).toBe('ok')
})

test('a limit that is changed or taken away holds from the next request on', async () => {
  const t = setup({ requestsPerSecond: 1 })
  await t.ask()
  expect((await t.ask()).code).toBe('rate_limited')
  t.quotas.requestsPerSecond = null
  expect(await t.ask()).toEqual({ code: 'ok', headers: {} })
})
