import { expect, test } from 'vitest'
import { fail, hang, ok, startHttpNodes, startTarget } from './http-kit.ts'
import { SECOND, START } from './kit.ts'

const once = { maxAttempts: 1 }
const twice = { maxAttempts: 2, backoff: { type: 'fixed', initial: '1s', jitter: 0 } } as const

async function setup(options: Parameters<typeof startHttpNodes>[0] = {}) {
  const t = await startHttpNodes(options)
  const target = await startTarget(t.clock)
  const call = (more: object = {}) => t.jobs.create({ http: { url: target.url }, timeout: '5s', ...more })
  const attempts = () =>
    t.query(
      `select number, counted, final, outcome, failure_class as class, status_code as status, error, response->>'body' as body
       from attempts order by finished_at, number`,
    )
  return { ...t, target, call, attempts }
}

test('an HTTP job without a queue is performed by a node, and its attempt tells what the target answered', async () => {
  const t = await setup()
  const { jobId } = await t.call({ payload: { a: 1 } })
  await t.settle()
  expect(await t.jobs.get(jobId)).toMatchObject({ status: 'succeeded' })
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 1, status: 200, body: 'fine' }])
})

test('a queue of HTTP calls that is made while a node runs is found and served', async () => {
  const t = await setup()
  await t.call({ queue: 'partner' })
  await t.settle()
  expect(t.target.seen).toHaveLength(1)
})

test('a recurring HTTP job is called at each of its times', async () => {
  const t = await setup()
  await t.call({ every: 'PT10S', startAt: new Date(START) })
  await t.pass(35 * SECOND)
  expect(t.target.seen.map(({ at }) => (at - START) / SECOND)).toEqual([0, 10, 20, 30])
})

test('a target that fails is called again after its backoff, and both attempts keep their answers', async () => {
  const t = await setup()
  t.target.answer = (response, request, seen) => (seen.attempt === 1 ? fail : ok)(response, request, seen)
  await t.call({ retry: twice })
  await t.pass(2 * SECOND)
  expect(await t.attempts()).toMatchObject([
    { number: 1, counted: true, final: false, outcome: 2, class: 4, status: 500, body: 'broken' },
    { number: 2, counted: true, final: true, outcome: 1, class: null, status: 200, body: 'fine' },
  ])
})

test('a target that refuses the request is not called again, and leaves a dead letter with its class', async () => {
  const t = await setup()
  t.target.answer = (response) => response.writeHead(404).end('who?')
  await t.call({ retry: twice })
  await t.pass(5 * SECOND)
  expect(await t.attempts()).toMatchObject([
    { number: 1, final: true, outcome: 2, class: 3, status: 404, body: 'who?' },
  ])
  expect(await t.query('select failure_class, failures from dead_letters')).toEqual([{ failure_class: 3, failures: 1 }])
})

test('what a target asks for in Retry-After wins over the backoff', async () => {
  const t = await setup()
  t.target.answer = (response, request, seen) =>
    seen.attempt === 1 ? response.writeHead(429, { 'retry-after': '7' }).end() : ok(response, request, seen)
  await t.call({ retry: twice })
  await t.pass(10 * SECOND)
  expect(t.target.seen.map(({ at }) => (at - START) / SECOND)).toEqual([0, 7])
  expect(await t.attempts()).toMatchObject([{ class: 5, status: 429 }, { status: 200 }])
})

test('a target that does not answer in time is called again', async () => {
  const t = await setup()
  t.target.answer = (response, request, seen) => (seen.attempt === 1 ? hang : ok)(response, request, seen)
  await t.call({ retry: twice })
  await t.pass(7 * SECOND)
  expect(await t.attempts()).toMatchObject([
    { number: 1, counted: true, final: false, outcome: 2, class: 1 },
    { number: 2, counted: true, final: true, outcome: 1 },
  ])
})

test('a call that may be made at most once is lost when its request was sent and no answer came', async () => {
  const t = await setup()
  t.target.answer = hang
  await t.call({ retry: twice, delivery: 'at_most_once' })
  await t.pass(10 * SECOND)
  expect(t.target.seen).toHaveLength(1)
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 4, class: 1 }])
})

test('a call that may be made at most once is tried again when its request was never sent', async () => {
  const t = await setup()
  await t.target.refuse()
  await t.call({ retry: twice, delivery: 'at_most_once' })
  await t.settle()
  expect(await t.attempts()).toMatchObject([{ number: 1, counted: true, final: false, outcome: 2, class: 2 }])
  await t.target.accept()
  await t.pass(2 * SECOND)
  expect(t.target.seen).toHaveLength(1)
})

test('a call that is canceled while it is under way ends as canceled', async () => {
  const t = await setup()
  t.target.answer = hang
  const { jobId } = await t.call({ retry: twice })
  await t.node.step()
  expect(t.target.active()).toBe(1)
  await t.jobs.cancel(jobId)
  await t.settle()
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 3, class: 8 }])
  await expect.poll(() => t.target.active()).toBe(0)
})

test('a node that stops lets calls end within the grace time and gives the others back, uncounted', async () => {
  const t = await setup()
  t.target.answer = hang
  await t.call({ retry: once })
  await t.node.step()
  await t.node.stop(0)
  expect(await t.attempts()).toMatchObject([{ number: 1, counted: false, final: false, outcome: 5 }])
  expect(await t.query('select failures, state from runs')).toEqual([{ failures: 0, state: 2 }])
})

test('a job that lost its HTTP target ends as invalid instead of being tried for ever', async () => {
  const t = await setup()
  await t.call()
  await t.query(`update specs set definition = '{"queue":"http"}'`)
  await t.settle()
  expect(await t.attempts()).toMatchObject([{ final: true, outcome: 2, class: 11 }])
})
