import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Caller, expectRefusal, type Hostile, type Item, type LeasedRun, startHostile } from './hostile-calls.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

const deep = (depth: number) => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`) as unknown

/** What PostgreSQL, or JSON, or UTF-8 cannot hold, and what only looks so. */
const NASTY: Record<string, unknown> = {
  nul: 'a\u0000b',
  nulKey: { 'a\u0000b': 1 },
  highSurrogate: 'a\ud800b',
  lowSurrogate: 'a\udc00b',
  swappedSurrogates: '\udc00\ud800',
  surrogateKey: { '\ud800': '\udfff' },
  controls: '\u0001\u001b[2J\u007f\u2028\u2029\ufeff\uffff',
  emoji: '👩‍👩‍👧‍👦 𝒳',
  prototype: JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":1}}'),
  deep90: deep(90),
  numbers: [1e308, -1e-308, 2 ** 53, -0],
  large: 'x'.repeat(65_000),
  tooLarge: 'x'.repeat(70_000),
  tooLargeInBytes: '€'.repeat(30_000),
}

/** What must come back as it was. */
const KEPT = ['controls', 'emoji', 'prototype', 'large', 'deep90']

async function setup() {
  const acme = await t.tenant()
  const names = Object.keys(NASTY)
  const runs = await acme.leased(names.length + 2)
  const nasty = names.map((name, i) => ({ name, value: NASTY[name], run: runs[i] as LeasedRun }))
  const [before, after] = runs.slice(names.length) as [LeasedRun, LeasedRun]
  /** Among others that are well: these must not notice. */
  const among = (item: (name: string, value: unknown, run: LeasedRun) => object, good: (run: LeasedRun) => object) => [
    good(before),
    ...nasty.map(({ name, value, run }) => item(name, value, run)),
    good(after),
  ]
  return { acme, nasty, before, after, among }
}

/**
 * Sends the items. Those that the server will not have it names, each by its place, and does nothing; without them the call
 * goes through. Answers what was said about those.
 */
async function send(
  acme: { work: Caller },
  call: 'heartbeat' | 'complete',
  items: object[],
): Promise<Map<string, Item>> {
  const list = call === 'complete' ? 'results' : 'leases'
  const path = `POST /v1/leases/${call}`
  let left = items as { token: string }[]
  let answer = await acme.work(path, { workerId: 'w1', [list]: left })
  for (let rounds = 0; answer.status !== 200 && rounds < items.length; rounds++) {
    expectRefusal(answer, call)
    const places = (answer.body.errors as { path: string }[]).map((one) => Number(/^\w+\[(\d+)\]/.exec(one.path)?.[1]))
    expect(
      places.every((place) => place > 0 && place < left.length - 1),
      JSON.stringify(answer.body),
    ).toBe(true)
    left = left.filter((_, i) => !places.includes(i))
    answer = await acme.work(path, { workerId: 'w1', [list]: left })
  }
  expect(answer.status).toBe(200)
  const told = answer.body[list] as Item[]
  expect(told.map(({ token, outcome }) => [token, outcome])).toEqual(left.map(({ token }) => [token, 'ok']))
  return new Map(told.map((one) => [one.token, one]))
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

test('a result may be anything: the work is done, and what cannot be kept is left out with a word', async () => {
  const { acme, nasty, before, after, among } = await setup()
  const told = await send(
    acme,
    'complete',
    among(
      (_, result, { token }) => ({ token, status: 'succeeded', result }),
      ({ token }) => ({ token, status: 'succeeded', result: { fine: true } }),
    ),
  )
  for (const { runId } of [before, after])
    expect(await acme.runOf(runId)).toMatchObject({ status: 'succeeded', result: { fine: true } })
  for (const { name, value, run } of nasty) {
    const shown = await acme.runOf(run.runId)
    expect(shown.status, name).toBe(told.has(run.token) ? 'succeeded' : 'running')
    if (!told.has(run.token)) continue
    if (KEPT.includes(name)) expect(shown.result, name).toEqual(value)
    if (name.startsWith('tooLarge')) expect(shown.result, name).toBeNull()
    // Whoever loses what he gave is told.
    if (shown.result === null) expect(told.get(run.token)?.note, name).toMatch(/result/)
  }
})

test('an error may say anything: the attempt has failed, and its words are kept as far as they can be', async () => {
  const { acme, nasty, before, after, among } = await setup()
  const failed = (token: string, message: string) => ({
    ...{ token, status: 'failed' },
    error: { message, retryable: false },
  })
  const told = await send(
    acme,
    'complete',
    among(
      (_, value, { token }) => failed(token, textOf(value)),
      ({ token }) => failed(token, 'plain'),
    ),
  )
  for (const { runId } of [before, after])
    expect(await acme.runOf(runId)).toMatchObject({ status: 'failed', error: 'plain' })
  for (const { name, run } of nasty) {
    const shown = await acme.runOf(run.runId)
    const [status, failures] = told.has(run.token) ? ['failed', 1] : ['running', 0]
    expect(shown, name).toMatchObject({ status, failures })
    if (status === 'running') continue
    expect(shown.error?.length, name).toBeGreaterThan(0)
    expect(shown.error, name).not.toContain('\u0000')
  }
})

test('a checkpoint may be anything: the next attempt gets it as it was, or the one before it, and the worker is told', async () => {
  const { acme, nasty, before, after, among } = await setup()
  const tokens = [before, ...nasty.map(({ run }) => run), after].map(({ token }) => ({ token }))
  await acme.worker.heartbeat(tokens.map((lease) => ({ ...lease, checkpoint: 'earlier' })))
  const told = await send(
    acme,
    'heartbeat',
    among(
      (_, checkpoint, { token }) => ({ token, checkpoint }),
      ({ token }) => ({ token, checkpoint: 'later' }),
    ),
  )
  await acme.worker.release(tokens)
  const next = new Map<string, LeasedRun>()
  while (next.size < tokens.length)
    for (const run of await acme.worker.lease('work', { max: 100 })) next.set(run.runId, run)
  for (const { runId } of [before, after]) expect(next.get(runId)).toMatchObject({ attempt: 2, checkpoint: 'later' })
  for (const { name, value, run } of nasty) {
    const got = next.get(run.runId)?.checkpoint
    if (!told.has(run.token)) expect(got, name).toBe('earlier')
    else if (KEPT.includes(name)) expect(got, name).toEqual(value)
    else if (got === 'earlier') expect(told.get(run.token)?.note, name).toMatch(/checkpoint/)
    if (name.startsWith('tooLarge')) expect(got, name).toBe('earlier')
  }
})

test('progress and log lines may say anything, and the others of the call are kept', async () => {
  const { acme, nasty, before, after, among } = await setup()
  const short = (text: string) => text.slice(0, 900)
  const told = await send(
    acme,
    'heartbeat',
    among(
      (_, value, { token }) => ({
        token,
        progress: { value: 0.5, text: short(textOf(value)) },
        logs: [
          { line: 1, message: textOf(value) },
          { line: 2, message: 'fine' },
        ],
      }),
      ({ token }) => ({ token, progress: { value: 1, text: 'all' }, logs: [{ line: 1, message: 'fine' }] }),
    ),
  )
  const logsOf = async ({ runId }: LeasedRun) => (await acme.write(`GET /v1/runs/${runId}/logs`)).body.items
  for (const run of [before, after]) {
    expect((await acme.runOf(run.runId)).progress).toEqual({ value: 1, text: 'all' })
    expect(await logsOf(run)).toMatchObject([{ line: 1, message: 'fine' }])
  }
  for (const { name, run } of nasty) {
    const lines = await logsOf(run)
    const { progress } = await acme.runOf(run.runId)
    if (!told.has(run.token)) {
      expect([progress, lines], name).toEqual([null, []])
      continue
    }
    expect(progress, name).toMatchObject({ value: 0.5 })
    expect(lines, name).toHaveLength(2)
    expect(lines[1], name).toMatchObject({ line: 2, message: 'fine' })
    expect(lines[0].message.length, name).toBeLessThanOrEqual(8_193)
  }
})

test('a worker may call itself anything that can be kept, and is refused in words otherwise', async () => {
  const { acme } = await setup()
  for (const [name, value] of Object.entries(NASTY)) {
    const text = textOf(value)
    for (const fields of [
      { version: text },
      { labels: { a: text } },
      { labels: { [text.slice(0, 60)]: 'a' } },
      { queues: [text] },
    ]) {
      const answer = await acme.work('PUT /v1/workers/w7', fields)
      expect([200, 422], `${name} ${JSON.stringify(answer.body).slice(0, 300)}`).toContain(answer.status)
      if (answer.status === 200) expect((await acme.write('GET /v1/workers/w7')).status).toBe(200)
    }
  }
})

test('what is nested two hundred deep is refused or kept whole, and breaks nothing', async () => {
  const { acme, before } = await setup()
  const { token, runId } = before
  const bodies: [line: string, body: object][] = [
    ['heartbeat', { leases: [{ token, checkpoint: deep(200) }] }],
    ['complete', { results: [{ token, status: 'succeeded', result: deep(200) }] }],
  ]
  for (const [line, body] of bodies) {
    const answer = await acme.work(`POST /v1/leases/${line}`, { workerId: 'w1', ...body })
    if (answer.status !== 200) {
      expectRefusal(answer, line)
      expect((await acme.runOf(runId)).status).toBe('running')
    } else if (line === 'complete') expect((await acme.runOf(runId)).result).toEqual(deep(200))
  }
})
