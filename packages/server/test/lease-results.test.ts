import { expect, test } from 'vitest'
import { oneNode } from './worker-calls.ts'

const start = oneNode()

test('a lease call can say how the runs before ended, and may be repeated as it is', async () => {
  const t = await start()
  const w1 = t.worker('w1')
  const run = await t.leased(w1, { lease: { leaseMs: 600_000 } })
  await t.create({})
  const call = {
    requestId: 'next',
    waitMs: 5_000,
    results: [
      { token: run.token, status: 'succeeded', result: 7 },
      { token: 'x', status: 'succeeded' },
    ],
  }
  const next = await w1.lease('mails', call)
  expect(next).toMatchObject({ runs: [{ attempt: 1 }], results: [{ outcome: 'ok' }, { outcome: 'unknown_token' }] })
  expect((await t.read(`GET /v1/runs/${run.runId}`)).body).toMatchObject({ status: 'succeeded', result: 7 })
  const again = await w1.lease('mails', call)
  expect(again.runs.map(({ token }) => token)).toEqual(next.runs.map(({ token }) => token))
  expect(again).toMatchObject({ results: [{ outcome: 'ok' }, { outcome: 'unknown_token' }] })
})
