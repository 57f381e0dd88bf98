import { expect, test } from 'vitest'
import { type Runtime, systemRuntime } from '../runtime/runtime.ts'
import { report } from './report.ts'

const URL = 'https://belfry.example.com/v1/callbacks/token'

/** A Belfry that gives these answers in turn, and a clock that does not wait. */
function setup(...answers: (number | 'cut')[]) {
  const sent: unknown[] = []
  const pauses: number[] = []
  const fetch = (async (_: unknown, { body }: RequestInit) => {
    sent.push(JSON.parse(body as string))
    const answer = answers.shift()
    if (answer === 'cut') throw new TypeError('fetch failed')
    return new Response('{"code":"…"}', { status: answer as number })
  }) as typeof globalThis.fetch
  const runtime: Runtime = {
    ...systemRuntime,
    timer: (ms, wake) => {
      pauses.push(ms)
      queueMicrotask(wake)
      return { cancel: () => {} }
    },
  }
  return { fetch, runtime, sent, pauses }
}

test('a report whose answer was lost is sent again until it is answered', async () => {
  const t = setup('cut', 503, 429, 200)
  expect(await report(URL, { status: 'succeeded', result: { rows: 42 } }, t)).toBe('ok')
  expect(t.sent).toEqual(Array.from({ length: 4 }, () => ({ status: 'succeeded', result: { rows: 42 } })))
  expect(t.pauses).toEqual([500, 1_000, 2_000])
})

test('who reports too late is told so', async () => {
  expect(await report(URL, { status: 'failed', error: 'disk full' }, setup(409))).toBe('lease_lost')
})

test('an answer that will not change is thrown at once, and silence after a bounded number of tries', async () => {
  const refused = setup(404)
  await expect(report(URL, { status: 'succeeded' }, refused)).rejects.toMatchObject({ code: 'callback_failed' })
  expect(refused.sent).toHaveLength(1)
  const silent = setup(...Array.from({ length: 20 }, () => 'cut' as const))
  await expect(report(URL, { status: 'succeeded' }, silent)).rejects.toMatchObject({
    code: 'callback_failed',
    cause: expect.any(TypeError),
  })
  expect(silent.sent).toHaveLength(8)
})

test('a receiver that stops need not wait', async () => {
  const stop = new AbortController()
  const t = setup(503)
  const waiting = report(URL, { status: 'succeeded' }, { ...t, runtime: systemRuntime, signal: stop.signal })
  stop.abort(new Error('stopping'))
  await expect(waiting).rejects.toThrow('stopping')
})
