import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hostile, startHostile } from './hostile-calls.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

test('a token that cannot be one gets its own answer, and the others of its call get theirs', async () => {
  const acme = await t.tenant()
  const { runId, token } = await acme.one()
  const leases = ['x'.repeat(100_000), token, token.repeat(10), 'a\u0000b', '\ud800'].map((one) => ({ token: one }))
  const expected = (own: string) => ['unknown_token', own, 'unknown_token', 'unknown_token', 'unknown_token']
  const told = async (call: 'heartbeat' | 'release') => (await acme.worker[call](leases)).map(({ outcome }) => outcome)
  expect(await told('heartbeat')).toEqual(expected('ok'))
  const done = await acme.worker.complete(leases.map((lease) => ({ ...lease, status: 'succeeded' })))
  expect(done.map(({ outcome }) => outcome)).toEqual(expected('ok'))
  expect(await told('release')).toEqual(expected('lease_lost'))
  expect((await acme.runOf(runId)).status).toBe('succeeded')
})
