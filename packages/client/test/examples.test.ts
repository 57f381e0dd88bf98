import { afterAll, beforeAll, expect, test } from 'vitest'
import { ExamplesPlace, type Program, printed, testWith } from './examples-place.ts'

let place: ExamplesPlace
beforeAll(async () => {
  place = await ExamplesPlace.start()
})
afterAll(() => place?.remove())

/** The line with `export` that a page's second terminal needs too. */
const exportsOf = (block: string): string => block.slice(0, block.indexOf('\n') + 1)

/** The same lines with a key that can do nothing but work. */
async function asWorker(block: string): Promise<string> {
  const { key } = await place.call<{ key: string }>('POST', '/v1/api-keys', { name: 'worker', scopes: ['worker'] })
  return block.replace('$(cat .belfry/admin-key)', key)
}

const jobIn = (said: string): string => /"jobId":"([^"]+)"/.exec(said)?.[1] as string

async function stopped(worker: Program): Promise<string> {
  worker.child.kill('SIGTERM')
  expect(await worker.ended, worker.said()).toBe(0)
  return worker.said()
}

const isGone = async (): Promise<void> => {
  const { items } = await place.call<{ items: { id: string; inFlight: number }[] }>('GET', '/v1/workers')
  expect(items).toEqual([])
}

testWith('bash', 'curl')('the TypeScript worker works as printed', async () => {
  const [work = '', create = ''] = printed('examples/typescript-worker/README.md')
  const worker = place.shell(work)
  await worker.line(/^working on emails/)
  const said = await place.pasted(exportsOf(work) + create)
  const run = await place.end(await place.runOf(jobIn(said)))
  expect(run).toMatchObject({ status: 'succeeded', attempt: 1, result: { sent: 2 } })
  const { items } = await place.call<{ items: { message: string }[] }>('GET', `/v1/runs/${run.id}/logs`)
  expect(items.map(({ message }) => message)).toEqual(['sent to ada@example.org', 'sent to grace@example.org'])
  await stopped(worker)
  await isGone()
})

testWith(
  'bash',
  'curl',
  'python3',
)('the Python worker works as printed', async () => {
  const [work = '', create = ''] = printed('examples/python-worker/README.md')
  const worker = place.shell(work)
  await worker.line(/works on images$/)
  const said = await place.pasted(exportsOf(work) + create)
  const run = await place.end(await place.runOf(jobIn(said)))
  expect(run).toMatchObject({ status: 'succeeded', attempt: 1, result: { items: 3, begunAt: 0 } })
  const { items } = await place.call<{ items: { message: string }[] }>('GET', `/v1/runs/${run.id}/logs`)
  expect(items.map(({ message }) => message)).toEqual(['item one', 'item two', 'item three'])

  // What cannot be understood fails, and says why.
  const id = await place.create({ queue: 'images', payload: {}, retry: { maxAttempts: 1 } })
  expect(await place.end(id)).toMatchObject({ status: 'failed', error: expect.stringContaining("KeyError: 'items'") })
  expect(await stopped(worker)).toContain('stopped')
  await isGone()
})

testWith('bash', 'python3')(
  'the Python worker gives back what it cannot finish, and the next one goes on from there',
  async () => {
    const [work = ''] = printed('examples/python-worker/README.md')
    const first = place.shell(work, { GRACE_SECONDS: '0.5' })
    await first.line(/works on images$/)
    // The second item would take for ever.
    const items = Array.from({ length: 3 }, (_, number) => number)
    const id = await place.create({ queue: 'images', payload: { items, secondsPerItem: 2 } })
    await expect.poll(() => place.run(id)).toMatchObject({ progress: { value: 1 / 3 } })
    expect(await stopped(first)).toContain(`${id} released`)
    expect(await place.run(id)).toMatchObject({ status: 'ready', failures: 0 })

    const second = place.shell(work)
    const run = await place.end(id)
    expect(run).toMatchObject({ status: 'succeeded', attempt: 2, failures: 0, result: { items: 3 } })
    expect((run.result as { begunAt: number }).begunAt).toBeGreaterThan(0)
    expect(run.attempts.map(({ counted }) => counted)).toEqual([false, true])
    await stopped(second)
  },
)

testWith('bash', 'curl')('the shell worker works as printed', async () => {
  const [work = '', create = ''] = printed('examples/shell-worker/README.md')
  const worker = place.shell(work)
  await worker.line(/works on backups$/)
  const said = await place.pasted(exportsOf(work) + create)
  const id = await place.runOf(jobIn(said))
  expect(await place.end(id)).toMatchObject({
    status: 'succeeded',
    attempt: 1,
    result: expect.stringMatching(`^backup of shop done by attempt 1 of ${id}`),
  })

  // A payload that looks like the protocol confuses nobody; what the command refuses is not tried again.
  const payload = { token: 'mine', runs: [{ runId: 'x', '"}],{': '\\"\n%s straße' }] }
  const refused = await place.end(await place.create({ queue: 'backups', payload }))
  expect(refused).toMatchObject({ status: 'failed', attempt: 1, error: expect.stringContaining('no database in {') })
  expect(refused.error).toContain('{"token":"mine","runs":[{"runId":"x"')
  expect(await stopped(worker)).toContain('stopped')
  await isGone()
})

testWith('bash', 'curl')('the shell worker gives back what it cannot finish', async () => {
  const [work = ''] = printed('examples/shell-worker/README.md')
  const worker = place.shell(work, { GRACE_SECONDS: '1', POLL_MS: '500', BACKUP_SECONDS: '60' })
  await worker.line(/works on backups$/)
  const id = await place.create({ queue: 'backups', payload: { database: 'shop' } })
  await worker.line(/attempt 1 begins$/)
  await stopped(worker)
  expect(await place.run(id)).toMatchObject({ status: 'ready', failures: 0, attempt: 1 })
  await place.call('POST', `/v1/runs/${id}/cancel`)
})

testWith('bash', 'curl')(
  'the shell worker keeps its lease by heartbeats, and stops when it hears of a cancel',
  async () => {
    const [work = ''] = printed('examples/shell-worker/README.md')
    const long = place.shell(await asWorker(work), { LEASE_MS: '3000', POLL_MS: '500', BACKUP_SECONDS: '5' })
    const id = await place.create({ queue: 'backups', payload: { database: 'shop' } })
    expect(await place.end(id)).toMatchObject({ status: 'succeeded', attempt: 1 })
    await stopped(long)
    const endless = place.shell(work, { LEASE_MS: '3000', POLL_MS: '500', BACKUP_SECONDS: '600' })
    const other = await place.create({ queue: 'backups', payload: { database: 'shop' } })
    await endless.line(/attempt 1 begins$/)
    await place.call('POST', `/v1/runs/${other}/cancel`)
    expect(await place.end(other)).toMatchObject({ status: 'canceled', attempt: 1 })
    await endless.line(/attempt 1 ended with 143: .*"outcome":"ok"/)
    await stopped(endless)
  },
)

testWith('bash', 'python3')(
  'the Python worker keeps its lease by heartbeats, and stops when it hears of a cancel',
  async () => {
    const [work = ''] = printed('examples/python-worker/README.md')
    const worker = place.shell(await asWorker(work), { LEASE_MS: '2000' })
    const long = await place.create({ queue: 'images', payload: { items: [1], secondsPerItem: 5 } })
    const endless = await place.create({ queue: 'images', payload: { items: [1], secondsPerItem: 600 } })
    await worker.line(new RegExp(`${endless} attempt 1`))
    await place.call('POST', `/v1/runs/${endless}/cancel`)
    expect(await place.end(endless)).toMatchObject({ status: 'canceled', attempt: 1 })
    await worker.line(new RegExp(`${endless} canceled .ok.$`))
    expect(await place.end(long)).toMatchObject({ status: 'succeeded', attempt: 1 })
    await stopped(worker)
  },
)

testWith('bash', 'curl')('the Express receiver works as printed', async () => {
  const [work = '', create = ''] = printed('examples/express-receiver/README.md')
  const receiver = place.shell(work.replace('PORT=3000', 'PORT=0'))
  const [, port = ''] = await receiver.line(/^receiving on http:\/\/127\.0\.0\.1:(\d+)/)
  const said = await place.pasted(exportsOf(work) + create.replace('127.0.0.1:3000', `127.0.0.1:${port}`))
  expect(await place.end(await place.runOf(jobIn(said)))).toMatchObject({ status: 'succeeded', attempt: 1 })
  await receiver.line(/attempt 1: done$/)
  expect(await place.query('select customer from invoices')).toEqual([{ customer: 'ada' }])

  const stranger = await fetch(`http://127.0.0.1:${port}/invoices`, { method: 'POST', body: '{"customer":"eve"}' })
  expect([stranger.status, await stranger.text()]).toEqual([400, expect.stringContaining('missing_header')])
  const wrong = await place.create({ http: { url: `http://127.0.0.1:${port}/invoices`, body: {} } })
  expect(await place.end(wrong)).toMatchObject({ status: 'failed', attempt: 1 })
  await stopped(receiver)
})

test('a job in the own transaction is there if the order is', async () => {
  const [work = ''] = printed('examples/transactional-enqueue/README.md')
  const said = await place.pasted(work)
  expect(said).toMatch(/^order \d+ is placed, and will be confirmed$/m)
  expect(said).toMatch(/^no order and no job: the payment was refused$/m)
  expect(await place.query('select customer from orders')).toEqual([{ customer: 'ada' }])
  expect(await confirmations()).toEqual([{ order: expect.any(String), customer: 'ada' }])
})

testWith('bash', 'psql')('everything that speaks SQL can do the same', async () => {
  const [work = '', sql = ''] = printed('examples/transactional-enqueue/README.md')
  await place.pasted(exportsOf(work) + sql)
  expect(await confirmations()).toEqual([{ order: expect.any(Number), customer: 'alan' }])
})

/** What is to be confirmed since the last time, as a worker gets it. */
async function confirmations(): Promise<unknown[]> {
  type Leased = { runs: { token: string; payload: unknown }[] }
  const workerId = 'examples-test'
  const lease = { workerId, max: 10, waitMs: 30_000 }
  const leased = await place.call<Leased>('POST', '/v1/queues/confirmations/lease', lease)
  const results = leased.runs.map(({ token }) => ({ token, status: 'succeeded' }))
  await place.call('POST', '/v1/leases/complete', { workerId, results })
  await place.call('DELETE', `/v1/workers/${workerId}`)
  return leased.runs.map(({ payload }) => payload)
}
