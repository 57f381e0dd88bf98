import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectRefusal, type Hostile, startHostile } from './hostile-calls.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

/** JSON texts, so that there may be among them what no program would write. */
const WRONG = [
  'null',
  'true',
  '-1',
  '1.5',
  '1e400',
  '9'.repeat(400),
  '""',
  `"${'x'.repeat(100_000)}"`,
  '"\\u0000"',
  '"\\ud800"',
  '[]',
  '{}',
  '{"a":1}',
  '{"__proto__":{"a":1}}',
  `${'['.repeat(200)}${']'.repeat(200)}`,
  `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`,
]

/** A body, and every place in it. */
interface Route {
  line: string
  body: (token: string) => Record<string, unknown>
}

const ROUTES: Route[] = [
  {
    line: 'POST /v1/queues/work/lease',
    body: () => ({
      ...{ workerId: 'w1', max: 1, waitMs: 0, leaseMs: 600_000, requestId: 'r1', prefetch: 0 },
      results: [{ token: 'made-up', status: 'succeeded', result: 1 }],
    }),
  },
  {
    line: 'POST /v1/leases/heartbeat',
    body: (token) => ({
      workerId: 'w1',
      leases: [
        {
          token,
          checkpoint: { page: 1 },
          progress: { value: 0.5, text: 'half' },
          logs: [{ line: 1, level: 'info', message: 'm', at: '2026-01-01T00:00:00Z' }],
        },
      ],
    }),
  },
  {
    line: 'POST /v1/leases/complete',
    body: (token) => ({
      workerId: 'w1',
      results: [
        {
          token,
          status: 'failed',
          result: 1,
          error: { message: 'm', class: 'network', retryable: true },
          retryIn: '1h',
          durationMs: 5,
        },
      ],
    }),
  },
  { line: 'POST /v1/leases/release', body: (token) => ({ workerId: 'w1', leases: [{ token }] }) },
  {
    line: 'PUT /v1/workers/w1',
    body: () => ({ queues: ['work'], capacity: 3, version: '1', labels: { a: 'b' }, draining: false }),
  },
]

type Path = (string | number)[]

function placesIn(value: unknown, path: Path = []): Path[] {
  if (value === null || typeof value !== 'object') return [path]
  return [path, ...Object.entries(value).flatMap(([name, one]) => placesIn(one, [...path, name]))]
}

const HERE = '\u{1f3af}'

/** The body as JSON with other text at one place. */
function withAt(body: unknown, path: Path, text: string): string {
  if (path.length === 0) return text
  const copy = structuredClone(body) as Record<string, unknown>
  let at = copy
  for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>
  at[path.at(-1) as string] = HERE
  return JSON.stringify(copy).replace(`"${HERE}"`, () => text)
}

test('whatever stands in any field of any call is taken or refused in words, and what is refused changes nothing', async () => {
  const acme = await t.tenant()
  const held = await acme.one()
  const made = 'a-token-that-nobody-gave'
  for (const { line, body } of ROUTES) {
    for (const path of placesIn(body(made))) {
      const texts = WRONG.map((wrong) => withAt(body(made), path, wrong))
      const answers = await Promise.all(texts.map((text) => acme.work(line, text)))
      answers.forEach((answer, i) => {
        const about = `${line} with ${path.join('.')} = ${WRONG[i]?.slice(0, 60)}`
        if (answer.status !== 200) expectRefusal(answer, about)
        else if (/lease/.test(line)) {
          const { leases = [], results = [] } = answer.body
          for (const item of [...leases, ...results]) expect(item, about).toMatchObject({ outcome: 'unknown_token' })
        }
      })
    }
  }
  // The same with a token that is good: nothing but a result may be anything.
  for (const { line, body } of ROUTES.filter((route) => /complete|release/.test(route.line))) {
    for (const path of placesIn(body(held.token)).filter((place) => place.length > 0 && place.at(-1) !== 'result')) {
      for (const wrong of ['null', '[1]', '{"a":1}', '1e400']) {
        const answer = await acme.work(line, withAt(body(held.token), path, wrong))
        expectRefusal(answer, `${line} with ${path.join('.')} = ${wrong}`)
      }
    }
  }
  expect(await acme.runOf(held.runId)).toMatchObject({ status: 'running', attempt: 1 })
  expect((await acme.worker.heartbeat([{ token: held.token }]))[0]?.outcome).toBe('ok')
})

test('a field that nobody knows is refused by name wherever it stands', async () => {
  const acme = await t.tenant()
  const held = await acme.one()
  for (const { line, body } of ROUTES) {
    const good = body(held.token)
    const objects = placesIn(good).filter((path) => {
      const value = path.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], good)
      return value !== null && typeof value === 'object' && !Array.isArray(value)
    })
    for (const path of objects) {
      // What is in these is the caller's own.
      if (['checkpoint', 'labels'].includes(String(path.at(-1)))) continue
      const copy = structuredClone(good)
      const at = path.reduce<Record<string, unknown>>((one, name) => one[name] as Record<string, unknown>, copy)
      at.unheardOf = 1
      const answer = await acme.work(line, copy)
      expect(answer.status, `${line} ${path.join('.')}`).toBe(422)
      expect(JSON.stringify(answer.body.errors), `${line} ${path.join('.')}`).toContain('unheardOf')
    }
  }
  expect(await acme.runOf(held.runId)).toMatchObject({ status: 'running' })
})

const LIMIT_BYTES = 8 * 1_048_576

test('a call may have ten thousand items and eight mebibytes, and not one more', async () => {
  const acme = await t.tenant()
  const runs = await acme.leased(2)
  const [first, last] = runs.map(({ token }) => token)
  const filling = (count: number) => Array.from({ length: count }, (_, i) => ({ token: `made-up-${i}` }))
  const many = [{ token: first }, ...filling(9_998), { token: last }]
  const said = (items: object[]) => items.map((item) => ({ ...item, status: 'succeeded', result: 1 }))

  const beats = await acme.worker.heartbeat(many)
  expect(beats.map(({ token }) => token)).toEqual(many.map(({ token }) => token))
  expect(new Set(beats.slice(1, -1).map(({ outcome }) => outcome))).toEqual(new Set(['unknown_token']))
  expect([beats[0]?.outcome, beats.at(-1)?.outcome]).toEqual(['ok', 'ok'])

  for (const [line, body] of [
    ['heartbeat', { workerId: 'w1', leases: [...many, { token: 'one-more' }] }],
    ['complete', { workerId: 'w1', results: said([...many, { token: 'one-more' }]) }],
    ['release', { workerId: 'w1', leases: [...many, { token: 'one-more' }] }],
  ] as const) {
    const answer = await acme.work(`POST /v1/leases/${line}`, body)
    expectRefusal(answer, line)
    expect(answer.status, line).toBe(422)
  }

  const padded = (value: object, bytes: number) => {
    const json = JSON.stringify(value)
    return json + ' '.repeat(bytes - json.length)
  }
  for (const line of ['heartbeat', 'complete', 'release']) {
    const body = { workerId: 'w1', [line === 'complete' ? 'results' : 'leases']: [] }
    expect((await acme.work(`POST /v1/leases/${line}`, padded(body, LIMIT_BYTES))).status, line).toBe(200)
    const larger = await acme.work(`POST /v1/leases/${line}`, padded(body, LIMIT_BYTES + 1))
    expectRefusal(larger, line)
    expect(larger.status, line).toBe(413)
  }
  for (const line of ['POST /v1/queues/work/lease', 'PUT /v1/workers/w1'])
    expectRefusal(await acme.work(line, padded({}, LIMIT_BYTES + 1)), line)

  const done = await acme.worker.complete(said(many))
  expect(done.map(({ outcome }) => outcome)).toEqual(['ok', ...Array(9_998).fill('unknown_token'), 'ok'])
  for (const { runId } of runs) expect(await acme.runOf(runId)).toMatchObject({ status: 'succeeded', result: 1 })
})

test('what is no JSON is refused, whatever it is', async () => {
  const acme = await t.tenant()
  const bodies = [
    ...[
      '',
      ' ',
      '{',
      '[',
      'undefined',
      '{"workerId":"w1"',
      '{"workerId":"w1"}{}',
      "{'workerId':1}",
      '"w1"',
      '[1]',
      '7',
    ],
    Buffer.from([0xff, 0xfe, 0x00]),
    Buffer.concat([Buffer.from('{"workerId":"'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')]),
    '['.repeat(100_000),
    '{"a":'.repeat(50_000),
  ]
  for (const { line } of ROUTES) {
    for (const body of bodies) {
      const answer = await acme.work(line, body)
      expectRefusal(answer, `${line} ${String(body).slice(0, 40)}`)
    }
  }
})
