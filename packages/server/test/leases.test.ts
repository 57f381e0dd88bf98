import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { oneNode, startWithWorkers, workerCalls } from './worker-calls.ts'

interface Run {
  status: string
  attempt: number
  failures: number
  result: unknown
  progress: unknown
  failureClass: string | null
  error: string | null
  attempts: {
    number: number
    status: string
    counted: boolean
    failureClass: string | null
    durationMs: number | null
  }[]
}

/** For what must not come back by itself while the test lasts. */
const LONG = { leaseMs: 600_000 }

const start = oneNode()

async function setup(starting = start) {
  const t = await starting()
  const runOf = async (runId: string) => (await t.read<Run>(`GET /v1/runs/${runId}`)).body
  return { ...t, runOf, w1: t.worker('w1'), w2: t.worker('w2') }
}

test('what is ready is leased with all that a worker needs to perform it', async () => {
  const t = await setup()
  const jobId = await t.create({ payload: { to: 'ada' }, labels: { team: 'growth' }, timeout: '10m' })
  const before = Date.now()
  const { runs, ...rest } = await t.w1.lease('mails', { waitMs: 10_000, leaseMs: 60_000 })
  expect(rest).toEqual({})
  expect(runs).toEqual([
    {
      ...{ runId: expect.stringMatching(`^${jobId}\\.`), jobId, attempt: 1, failures: 0, payload: { to: 'ada' } },
      ...{ nominalAt: expect.any(String), leaseUntil: expect.any(String), deadline: expect.any(String) },
      ...{ token: expect.any(String), timeoutMs: 600_000, labels: { team: 'growth' } },
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
    },
  ])
  const [run] = runs
  expect(Date.parse(run?.leaseUntil ?? '') - before).toBeGreaterThan(55_000)
  expect(Date.parse(run?.leaseUntil ?? '') - before).toBeLessThan(70_000)
  expect(Date.parse(run?.deadline ?? '') - before).toBeGreaterThan(590_000)
  expect(run?.token.length).toBeLessThan(200)
  expect(await t.runOf(run?.runId ?? '')).toMatchObject({ status: 'running', attempt: 1 })
})

test('a payload that is null is not one that is missing', async () => {
  const t = await setup()
  await t.create({ payload: null })
  await t.create({ payload: undefined })
  const { runs } = await t.w1.lease('mails', { max: 2, waitMs: 10_000 })
  const more = runs.length < 2 ? (await t.w1.lease('mails', { max: 2, waitMs: 10_000 })).runs : []
  const payloads = [...runs, ...more].map((run) => ('payload' in run ? run.payload : 'none'))
  expect(payloads.sort()).toEqual(['none', null].sort())
})

test('a poll that waits is answered at once when work comes, and after its time when none does', async () => {
  const t = await setup()
  const waiting = t.w1.lease('mails', { waitMs: 20_000 })
  await t.read('GET /v1/whoami')
  const began = performance.now()
  await t.create({})
  expect((await waiting).runs).toHaveLength(1)
  expect(performance.now() - began).toBeLessThan(10_000)
  const again = performance.now()
  expect(await t.w1.lease('mails', { waitMs: 300 })).toEqual({ runs: [] })
  expect(performance.now() - again).toBeGreaterThanOrEqual(295)
  expect(await t.w1.lease('mails')).toEqual({ runs: [] })
})

test('polls that wait share what comes, and nothing is given twice', async () => {
  const t = await setup()
  const polls = Array.from({ length: 8 }, (_, i) => t.worker(`w${i}`).lease('mails', { max: 5, waitMs: 10_000 }))
  await t.read('GET /v1/whoami')
  const jobs = Array.from({ length: 40 }, () => ({ queue: 'mails', payload: 1 }))
  await t.read('POST /v1/jobs/batch', { jobs })
  const seen = (await Promise.all(polls)).flatMap(({ runs }) => runs.map(({ runId }) => runId))
  for (let more = 1; more > 0; ) {
    const { runs } = await t.w1.lease('mails', { max: 100 })
    seen.push(...runs.map(({ runId }) => runId))
    more = runs.length
  }
  expect(seen).toHaveLength(40)
  expect(new Set(seen).size).toBe(40)
})

test('a lease call that is repeated answers the leases that are still held, and no others', async () => {
  const t = await setup()
  for (let i = 0; i < 4; i++) await t.create({})
  const call = { max: 2, waitMs: 10_000, requestId: 'r1' }
  const first = await t.w1.lease('mails', call)
  const [one, two] = first.runs
  const tokensOf = (answer: typeof first) => answer.runs.map(({ token }) => token).sort()
  expect(tokensOf(await t.w1.lease('mails', call))).toEqual(tokensOf(first))
  expect(await t.w1.complete([{ token: one?.token, status: 'succeeded' }])).toMatchObject([{ outcome: 'ok' }])
  if (two !== undefined) expect(tokensOf(await t.w1.lease('mails', call))).toEqual([two.token])
  // Another worker's call of the same name is another call.
  const others = tokensOf(await t.w2.lease('mails', call))
  expect(others.length).toBeGreaterThan(0)
  expect(others.filter((token) => tokensOf(first).includes(token))).toEqual([])
})

test('what was claimed for a client that has hung up goes to the next one', async () => {
  const t = await setup()
  for (let round = 0; round < 10; round++) {
    const hangUp = new AbortController()
    const gone = fetch(`${t.url}/v1/queues/mails/lease`, {
      method: 'POST',
      headers: { authorization: `Bearer ${t.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: 'gone', waitMs: 30_000, ...LONG }),
      signal: hangUp.signal,
    })
    gone.catch(() => {})
    // It has arrived when a later request has been answered.
    await t.read('GET /v1/whoami')
    hangUp.abort()
    await t.create({ payload: round })
    const { runs } = await t.w1.lease('mails', { waitMs: 10_000 })
    expect(runs).toMatchObject([{ payload: round, failures: 0 }])
    await t.w1.complete(runs.map(({ token }) => ({ token, status: 'succeeded' })))
  }
})

test('leases of a call that cannot be repeated go back when its answer could not be sent', async () => {
  const t = await setup()
  // Larger than what the system takes on for a client that does not read.
  const [count, payload] = [120, 'x'.repeat(250_000)]
  for (let made = 0; made < count; made += 40)
    await t.read('POST /v1/jobs/batch', { jobs: Array.from({ length: 40 }, () => ({ queue: 'mails', payload })) })
  const body = JSON.stringify({ workerId: 'gone', max: count, waitMs: 10_000, ...LONG })
  const deaf = connect({ port: t.port, host: '127.0.0.1' })
  deaf.pause()
  deaf.write(
    `POST /v1/queues/mails/lease HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${t.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const running = async () => (await t.read<{ running: number }>('GET /v1/queues/mails/scale')).body.running
  await expect.poll(running).toBe(count)
  // Some of the answer is there, so all of it has been given out.
  await once(deaf, 'readable')
  deaf.destroy()
  await expect.poll(running).toBe(0)
  const { runs } = await t.w1.lease('mails', { max: 5, waitMs: 10_000 })
  expect(runs.map(({ failures }) => failures)).toEqual([0, 0, 0, 0, 0])
})

test('a node that stops answers the polls that wait', async () => {
  const t = await setup(startWithWorkers)
  const waiting = t.w1.lease('mails', { waitMs: 30_000 })
  await t.read('GET /v1/whoami')
  const began = performance.now()
  await t.stopServer()
  expect((await waiting).runs).toEqual([])
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('each token gets its own answer, and bad ones do not stop the good', async () => {
  const t = await setup()
  const other = await t.tenant('other', ['admin'])
  await other.call('POST /v1/jobs', { queue: 'mails', payload: 1 })
  const foreign = (await workerCalls(other.call, 'w1').lease('mails', { waitMs: 10_000 })).runs[0]?.token ?? ''
  const expired = await t.leased(t.w2, { lease: { leaseMs: 1_000 } })
  const retaken = (await t.w1.lease('mails', { waitMs: 15_000, ...LONG })).runs[0]
  expect(retaken).toMatchObject({ runId: expired.runId, attempt: 2, failures: 1 })
  const done = await t.leased(t.w1)
  await t.w1.complete([{ token: done.token, status: 'succeeded' }])
  const good = await t.leased(t.w1, { lease: LONG })
  const tampered = `${good.token.slice(0, -3)}${good.token.endsWith('AAA') ? 'BBB' : 'AAA'}`
  const tokens = [foreign, expired.token, done.token, tampered, '', 'nonsense', 'ünï', good.token]
  const lost = ['unknown_token', 'lease_lost', 'lease_lost', ...Array(4).fill('unknown_token'), 'ok']

  const kept = await t.w1.heartbeat(tokens.map((token) => ({ token, checkpoint: 1, logs: [{ message: 'x' }] })))
  expect(kept.leases.map(({ token, outcome }) => [token, outcome])).toEqual(tokens.map((token, i) => [token, lost[i]]))
  expect(kept.leases.map((one) => 'leaseUntil' in one)).toEqual(lost.map((outcome) => outcome === 'ok'))
  const failed = { status: 'failed', error: { message: 'late' } }
  const completed = await t.w1.complete(
    tokens.map((token) => ({ token, ...(token === expired.token ? { status: 'succeeded' } : failed) })),
  )
  expect(completed.map(({ token, outcome }) => [token, outcome])).toEqual(tokens.map((token, i) => [token, lost[i]]))
  expect((await t.w1.release(tokens)).map(({ outcome }) => outcome)).toEqual([...lost.slice(0, -1), 'lease_lost'])

  expect((await t.runOf(done.runId)).status).toBe('succeeded')
  expect(await t.runOf(expired.runId)).toMatchObject({ status: 'running', attempt: 2 })
  expect(await t.runOf(good.runId)).toMatchObject({
    status: 'waiting',
    failures: 1,
    error: expect.stringContaining('late'),
  })
})

test('a completion may be repeated, and one that says otherwise is refused', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  const succeeded = [{ token: run.token, status: 'succeeded', result: { sent: 3 }, durationMs: 1 }]
  for (let i = 0; i < 3; i++) expect(await t.w1.complete(succeeded)).toEqual([{ token: run.token, outcome: 'ok' }])
  const failed = [{ token: run.token, status: 'failed', error: { message: 'no' } }]
  expect(await t.w1.complete(failed)).toEqual([{ token: run.token, outcome: 'lease_lost' }])
  const { attempts, ...shown } = await t.runOf(run.runId)
  expect(shown).toMatchObject({ status: 'succeeded', result: { sent: 3 } })
  expect(attempts).toMatchObject([{ number: 1, status: 'succeeded', durationMs: 1 }])
})

test('a result that is too large is left out, and the worker is told', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  const [answer] = await t.w1.complete([{ token: run.token, status: 'succeeded', result: 'x'.repeat(70_000) }])
  expect(answer).toEqual({ token: run.token, outcome: 'ok', note: expect.stringMatching(/result/) })
  expect(await t.runOf(run.runId)).toMatchObject({ status: 'succeeded', result: null })
})

test('a failure is retried as it says: at a time, by its class, or never', async () => {
  const t = await setup()
  const soon = await t.leased(t.w1)
  await t.w1.complete([
    { token: soon.token, status: 'failed', error: { message: 'busy', class: 'rate_limited' }, retryIn: '0s' },
  ])
  const again = (await t.w1.lease('mails', { waitMs: 10_000 })).runs[0]
  expect(again).toMatchObject({ runId: soon.runId, attempt: 2, failures: 1 })
  await t.w1.complete([{ token: again?.token, status: 'failed', error: { message: 'bad', retryable: false } }])
  const run = await t.runOf(soon.runId)
  expect(run).toMatchObject({ status: 'failed', failureClass: 'handler_error', error: expect.stringContaining('bad') })
  expect(run.attempts.map(({ failureClass }) => failureClass)).toEqual(['rate_limited', 'handler_error'])
  expect((await t.read(`GET /v1/dead-letters/${soon.runId}`)).status).toBe(200)
})

test('snoozed runs come again without a failure, canceled ones do not', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  await t.w1.complete([{ token: run.token, status: 'snoozed', retryIn: 'PT0.1S' }])
  const again = (await t.w1.lease('mails', { waitMs: 10_000 })).runs[0]
  expect(again).toMatchObject({ runId: run.runId, attempt: 2, failures: 0 })
  await t.w1.complete([{ token: again?.token, status: 'canceled' }])
  expect((await t.runOf(run.runId)).status).toBe('canceled')
})

test('what a completion lacks or has too much of is said with its place, and nothing is done', async () => {
  const t = await setup()
  const run = await t.leased(t.w1, { lease: LONG })
  const refused = async (result: object) => {
    const results = [
      { token: run.token, status: 'succeeded' },
      { token: run.token, ...result },
    ]
    const { body } = await t.as(t.key)('POST /v1/leases/complete', { workerId: 'w1', results })
    expect(body).toMatchObject({ status: 422, code: 'invalid_request' })
    return (body as unknown as { errors: { path: string }[] }).errors.map(({ path }) => path)
  }
  expect(await refused({ status: 'snoozed' })).toEqual(['results[1].retryIn'])
  expect(await refused({ status: 'failed', retryIn: 'soon' })).toEqual(['results[1].retryIn'])
  expect(await refused({ status: 'done' })).toEqual(['results[1].status'])
  expect(await refused({ status: 'failed', error: { message: 'x', class: 'nope' } })).toEqual([
    'results[1].error.class',
  ])
  expect(await refused({ status: 'succeeded', resutl: 1 })).toEqual(['results[1].resutl'])
  expect((await t.runOf(run.runId)).status).toBe('running')
})

test('a lease call that makes no sense is refused with the name of what is wrong', async () => {
  const t = await setup()
  const paths = async (body: object) => {
    const answer = await t.as(t.key)('POST /v1/queues/mails/lease', body)
    expect(answer.status).toBe(422)
    return (answer.body as unknown as { errors: { path: string }[] }).errors.map(({ path }) => path)
  }
  expect(await paths({})).toEqual(['workerId'])
  for (const workerId of ['', 'a b', 'ä', 'x'.repeat(129), 7]) expect(await paths({ workerId })).toContain('workerId')
  expect(await paths({ workerId: 'w', max: 1_001 })).toEqual(['max'])
  expect(await paths({ workerId: 'w', max: 0 })).toEqual(['max'])
  expect(await paths({ workerId: 'w', waitMs: 30_001 })).toEqual(['waitMs'])
  expect(await paths({ workerId: 'w', leaseMs: 999 })).toEqual(['leaseMs'])
  expect(await paths({ workerId: 'w', max: 3, prefetch: 4 })).toEqual(['prefetch'])
  expect(await paths({ workerId: 'w', requestId: 'a/b' })).toEqual(['requestId'])
  const http = await t.as(t.key)('POST /v1/queues/http/lease', { workerId: 'w' })
  expect(http.body).toMatchObject({ status: 409, code: 'queue_kind' })
})

test('a checkpoint comes with the next attempt, whoever performs it', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  expect('checkpoint' in run).toBe(false)
  await t.w1.heartbeat([{ token: run.token, checkpoint: { page: 6 } }])
  await t.w1.heartbeat([{ token: run.token, checkpoint: { page: 7 } }])
  await t.w1.heartbeat([{ token: run.token }])
  await t.w1.complete([{ token: run.token, status: 'failed', error: { message: 'x' }, retryIn: '0s' }])
  const next = (await t.w2.lease('mails', { waitMs: 10_000 })).runs[0]
  expect(next).toMatchObject({ attempt: 2, checkpoint: { page: 7 } })
  const large = await t.w2.heartbeat([{ token: next?.token, checkpoint: 'x'.repeat(70_000) }])
  expect(large.leases).toMatchObject([{ outcome: 'ok', note: expect.stringMatching(/checkpoint/) }])
  await t.w2.release([next?.token ?? ''])
  expect((await t.w1.lease('mails', { waitMs: 10_000 })).runs).toMatchObject([{ attempt: 3, checkpoint: { page: 7 } }])
})

test('progress and log lines are shown, and a heartbeat that is repeated stores its lines once', async () => {
  const t = await setup()
  const run = await t.leased(t.w1, { lease: LONG })
  const at = run.nominalAt
  const beat = [
    {
      token: run.token,
      progress: { value: 0.25, text: '1 of 4' },
      logs: [
        { line: 1, message: 'begun', at },
        { line: 2, level: 'warn', message: 'slow' },
      ],
    },
  ]
  for (let i = 0; i < 3; i++) expect((await t.w1.heartbeat(beat)).leases).toMatchObject([{ outcome: 'ok' }])
  await t.w1.heartbeat([{ token: run.token, logs: [{ line: 3, message: 'y'.repeat(9_000) }] }])
  const logs = async () => (await t.read<{ items: { message: string }[] }>(`GET /v1/runs/${run.runId}/logs`)).body.items
  await expect.poll(async () => (await logs()).length).toBe(3)
  const [first, second, third] = await logs()
  expect(first).toMatchObject({ attempt: 1, line: 1, level: 'info', message: 'begun', loggedAt: at })
  expect(second).toMatchObject({ line: 2, level: 'warn', message: 'slow' })
  expect(third?.message.length).toBeLessThanOrEqual(8_193)
  await expect.poll(async () => (await t.runOf(run.runId)).progress).toEqual({ value: 0.25, text: '1 of 4' })
})

test('a heartbeat extends the lease by its own length, and never past the time in which a worker stops', async () => {
  const t = await setup()
  const run = await t.leased(t.w1, { lease: { leaseMs: 20_000 } })
  const until = async (token: string) => Date.parse((await t.w1.heartbeat([{ token }])).leases[0]?.leaseUntil ?? '')
  const extended = await until(run.token)
  expect(extended).toBeGreaterThanOrEqual(Date.parse(run.leaseUntil))
  expect(extended - Date.now()).toBeGreaterThan(15_000)
  expect(extended - Date.now()).toBeLessThan(21_000)
  const short = await t.leased(t.w1, { job: { timeout: '5s' }, lease: { leaseMs: 20_000 } })
  const overtime = (await until(short.token)) - Date.parse(short.deadline)
  expect(overtime).toBeGreaterThan(10_000)
  expect(overtime).toBeLessThan(12_000)
})

test('what is released is ready at once, with no failure more', async () => {
  const t = await setup()
  const run = await t.leased(t.w1, { lease: LONG })
  expect(await t.w1.release([run.token])).toEqual([{ token: run.token, outcome: 'ok' }])
  const next = (await t.w2.lease('mails', { waitMs: 5_000 })).runs[0]
  expect(next).toMatchObject({ runId: run.runId, failures: 0 })
  expect(await t.w1.complete([{ token: run.token, status: 'succeeded' }])).toMatchObject([{ outcome: 'lease_lost' }])
})

test('a cancel reaches the worker with its next heartbeat', async () => {
  const t = await setup()
  const [run, other] = [await t.leased(t.w1), await t.leased(t.w1)]
  expect((await t.read(`POST /v1/runs/${run.runId}/cancel`)).body).toEqual({ status: 'canceling' })
  const { leases } = await t.w1.heartbeat([{ token: run.token }, { token: other.token }])
  expect(leases.map(({ outcome }) => outcome)).toEqual(['cancel_requested', 'ok'])
  expect(await t.w1.complete([{ token: run.token, status: 'canceled' }])).toMatchObject([{ outcome: 'ok' }])
  expect((await t.runOf(run.runId)).status).toBe('canceled')
})

test('a cancel ends the open poll of the worker that holds the run', async () => {
  const t = await setup()
  const run = await t.leased(t.w1, { lease: { requestId: 'first' } })
  const waiting = t.w1.lease('mails', { waitMs: 30_000, requestId: 'second' })
  const others = t.w2.lease('mails', { waitMs: 1_500 })
  await t.read('GET /v1/whoami')
  const began = performance.now()
  await t.read(`POST /v1/runs/${run.runId}/cancel`)
  expect(await waiting).toMatchObject({ runs: [], cancelRequested: [run.token] })
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(await others).toEqual({ runs: [] })
})

test('a job of at most one delivery is given only to a worker that begins it at once', async () => {
  const t = await setup()
  await t.create({ delivery: 'at_most_once' })
  expect((await t.w1.lease('mails', { max: 2, prefetch: 2, waitMs: 300 })).runs).toEqual([])
  expect((await t.w1.lease('mails', { max: 2, prefetch: 1, waitMs: 10_000 })).runs).toMatchObject([
    { atMostOnce: true },
  ])
})

test('a worker reads the payload that a run only names', async () => {
  const t = await setup()
  const put = await t.read<{ payloadRef: string }>('PUT /v1/payloads', 'a,b', { 'content-type': 'text/csv' })
  const run = await t.leased(t.w1, { job: { payload: undefined, payloadRef: put.body.payloadRef } })
  expect(run).toMatchObject({ payloadRef: put.body.payloadRef })
  expect('payload' in run).toBe(false)
  const got = await t.as(t.key)(`GET /v1/payloads/${run.payloadRef}`)
  expect([got.status, got.body]).toEqual([200, 'a,b'])
  expect((await t.as(t.key)(`DELETE /v1/payloads/${run.payloadRef}`)).status).toBe(403)
})
