import { afterAll, beforeAll, expect, test } from 'vitest'
import { Belfry, BelfryError, ERRORS } from '../../src/index.ts'
import { createDatabase, type TestDatabase, today } from '../database.ts'

let database: TestDatabase
let belfry: Belfry
let jobId: string

beforeAll(async () => {
  database = await createDatabase({ days: today() })
  belfry = await Belfry.start({ database: database.connection, schema: database.schema })
  jobId = (await belfry.jobs.create({ queue: 'q', cron: '@yearly', name: 'there' })).jobId
})

afterAll(async () => {
  await belfry.stop()
  await database.drop()
})

const TABLES = ['jobs', 'specs', 'timers', 'runs', 'attempts', 'dead_letters', 'skips', 'keys', 'schedules', 'queues']

/** Every row of every table that a call could have written, nodes and their pulses apart. */
async function stored(): Promise<unknown> {
  const rows = await database.query<{ content: string }>(
    TABLES.map((table) => `select '${table}' || coalesce(json_agg(t)::text, '') as content from ${table} t`).join(
      ' union all ',
    ),
  )
  return rows.map(({ content }) => content)
}

async function refusal(work: () => unknown): Promise<BelfryError> {
  let result: unknown
  try {
    result = await work()
  } catch (error) {
    if (error instanceof BelfryError) return error
    throw new Error(`failed with something that is no BelfryError: ${String(error)}`, { cause: error })
  }
  throw new Error(`was accepted and answered ${JSON.stringify(result)}`)
}

const cycle: Record<string, unknown> = {}
cycle.self = cycle
const trap = new Proxy(
  {},
  {
    get: () => {
      throw new Error('no')
    },
    ownKeys: () => {
      throw new Error('no')
    },
  },
)
const revoked = Proxy.revocable({}, {})
revoked.revoke()
const other = '019a8d3e-1f2a-7007-8abc-0123456789ab'

/** As people who do not use TypeScript call it. */
type Loose = (...values: unknown[]) => Promise<unknown>
const call = (place: 'jobs' | 'runs' | 'deadLetters', method: string, ...values: unknown[]) =>
  (belfry[place] as unknown as Record<string, Loose>)[method]?.(...values)

const create = (job: unknown) => () => call('jobs', 'create', job)
const cases: [what: string, code: keyof typeof ERRORS, path: string | null, work: () => unknown][] = [
  ['create nothing', 'invalid_job', '', create(undefined)],
  ['create null', 'invalid_job', '', create(null)],
  ['create a text', 'invalid_job', '', create('emails')],
  ['create a list', 'invalid_job', '', create([{ queue: 'q' }])],
  ['create a proxy that throws', 'invalid_job', null, create(trap)],
  ['create a revoked proxy', 'invalid_job', null, create(revoked.proxy)],
  ['create without a target', 'invalid_job', 'queue', create({})],
  ['create with an unknown field', 'invalid_job', 'qeue', create({ qeue: 'q', payload: 1 })],
  ['create with SQL in the queue', 'invalid_job', 'queue', create({ queue: "q'; drop table jobs; --" })],
  ['create with NUL in the payload', 'invalid_job', 'payload.a', create({ payload: { a: '\0' } })],
  ['create with a cycle', 'invalid_job', 'payload.self', create({ payload: cycle })],
  ['create with a bigint', 'invalid_job', 'payload', create({ payload: 1n })],
  ['create with a function', 'invalid_job', 'payload.f', create({ payload: { f: () => 1 } })],
  ['create with too much', 'payload_too_large', 'payload', create({ payload: 'x'.repeat(300_000) })],
  ['create deeper than a stack', 'invalid_job', null, create({ payload: nested(200_000) })],
  ['create for no tenant', 'invalid_job', 'tenant', create({ queue: 'q', tenant: 'nobody' })],
  ['create under a taken name', 'name_taken', null, create({ queue: 'q', name: 'there' })],
  ['create with a cron of 1 MB', 'invalid_job', 'cron', create({ queue: 'q', cron: '* '.repeat(500_000) })],
  ['create with a cron that never fires', 'invalid_job', 'cron', create({ queue: 'q', cron: '0 0 31 2 *' })],
  ['create in a far year', 'invalid_job', 'runAt', create({ queue: 'q', runAt: '+275760-09-13T00:00:00Z' })],
  ['create with an endless delay', 'invalid_job', 'delay', create({ queue: 'q', delay: `P${'9'.repeat(400)}D` })],
  ['create with priority NaN', 'invalid_job', 'priority', create({ queue: 'q', priority: Number.NaN })],
  ['create with __proto__', 'invalid_job', null, create(JSON.parse('{"queue":"q","__proto__":{"x":1}}'))],
  ['create in no transaction', 'invalid_argument', 'tx', () => call('jobs', 'create', { queue: 'q' }, { tx: {} })],
  ['create with options that are a text', 'invalid_argument', null, () => call('jobs', 'create', { queue: 'q' }, 'tx')],
  ['create with null for options', 'invalid_argument', null, () => call('jobs', 'create', { queue: 'q' }, null)],
  [
    'create with an unknown option',
    'invalid_argument',
    'txn',
    () => call('jobs', 'create', { queue: 'q' }, { txn: 1 }),
  ],
  ['createMany of one job', 'invalid_argument', 'jobs', () => call('jobs', 'createMany', { queue: 'q' })],
  ['createMany of null', 'invalid_argument', 'jobs', () => call('jobs', 'createMany', null)],
  [
    'createMany of too many',
    'invalid_argument',
    'jobs',
    () => call('jobs', 'createMany', Array(10_001).fill({ queue: 'q' })),
  ],
  [
    'createMany with one bad job',
    'invalid_job',
    '[1].queue',
    () => call('jobs', 'createMany', [{ queue: 'new' }, { queue: '?' }]),
  ],
  ['createMany with a hole', 'invalid_job', '[0]', () => call('jobs', 'createMany', Array(1))],
  [
    'createMany with one name twice',
    'name_taken',
    null,
    () =>
      call('jobs', 'createMany', [
        { queue: 'q', name: 'twin' },
        { queue: 'q', name: 'twin' },
      ]),
  ],
  ['update of nothing', 'invalid_argument', 'jobId', () => call('jobs', 'update')],
  ['update with no patch', 'invalid_argument', 'patch', () => call('jobs', 'update', jobId)],
  ['update with a list', 'invalid_argument', 'patch', () => call('jobs', 'update', jobId, [])],
  ['update of an unknown field', 'invalid_job', 'colour', () => call('jobs', 'update', jobId, { colour: 1 })],
  ['update of the name', 'invalid_job', 'name', () => call('jobs', 'update', jobId, { name: 'x' })],
  ['update to a one-off', 'invalid_job', null, () => call('jobs', 'update', jobId, { delay: '5s' })],
  ['update to a bad cron', 'invalid_job', 'cron', () => call('jobs', 'update', jobId, { cron: 'daily' })],
  ['update with a proxy that throws', 'invalid_job', null, () => call('jobs', 'update', jobId, trap)],
  ['update of a job that is not', 'not_found', null, () => call('jobs', 'update', other, {})],
  ['cancel of a number', 'invalid_argument', 'jobId', () => call('jobs', 'cancel', 5)],
  ['cancel of SQL', 'invalid_argument', 'jobId', () => call('jobs', 'cancel', "' or 1=1 --")],
  ['cancel of another spelling', 'invalid_argument', 'jobId', () => call('jobs', 'cancel', jobId.toUpperCase())],
  ['cancel of an object', 'invalid_argument', 'jobId', () => call('jobs', 'cancel', { toString: () => jobId })],
  ['cancel of what is not', 'not_found', null, () => call('jobs', 'cancel', other)],
  [
    'cancel with a wrong word',
    'invalid_argument',
    'running',
    () => call('jobs', 'cancel', jobId, { running: 'leave' }),
  ],
  ['cancel with null for options', 'invalid_argument', null, () => call('jobs', 'cancel', jobId, null)],
  ['pause of null', 'invalid_argument', 'jobId', () => call('jobs', 'pause', null)],
  ['pause of what is not', 'not_found', null, () => call('jobs', 'pause', other)],
  ['pause for NUL', 'invalid_argument', 'reason', () => call('jobs', 'pause', jobId, { reason: 'a\0b' })],
  [
    'pause for half a character',
    'invalid_argument',
    'reason',
    () => call('jobs', 'pause', jobId, { reason: '\ud800' }),
  ],
  ['pause for a number', 'invalid_argument', 'reason', () => call('jobs', 'pause', jobId, { reason: 5 })],
  [
    'pause for a megabyte',
    'invalid_argument',
    'reason',
    () => call('jobs', 'pause', jobId, { reason: 'x'.repeat(1e6) }),
  ],
  ['resume of an empty text', 'invalid_argument', 'jobId', () => call('jobs', 'resume', '')],
  ['resume of what is not', 'not_found', null, () => call('jobs', 'resume', other)],
  ['trigger of a date', 'invalid_argument', 'jobId', () => call('jobs', 'trigger', new Date())],
  ['trigger of what is not', 'not_found', null, () => call('jobs', 'trigger', other)],
  ['list of no page', 'invalid_argument', 'limit', () => call('jobs', 'list', { limit: -1 })],
  ['list with a made-up cursor', 'invalid_argument', 'cursor', () => call('jobs', 'list', { cursor: '%%%' })],
  ['list of null', 'invalid_argument', null, () => call('jobs', 'list', null)],
  ['runs.list with a made-up cursor', 'invalid_argument', 'cursor', () => call('runs', 'list', { cursor: 5 })],
  ['runs.cancel of a job id', 'invalid_argument', 'runId', () => call('runs', 'cancel', jobId)],
  ['runs.cancel of what is not', 'not_found', null, () => call('runs', 'cancel', `${other}.1`)],
  ['runs.cancel at a time before Christ', 'not_found', null, () => call('runs', 'cancel', `${other}.-zzzzzzzzz`)],
  ['runs.retry of undefined', 'invalid_argument', 'runId', () => call('runs', 'retry', undefined)],
  ['runs.retry of what is not', 'not_found', null, () => call('runs', 'retry', `${other}.1`)],
  ['redrive of what is not', 'not_found', null, () => call('deadLetters', 'redrive', `${other}.1`)],
  ['deadLetters.list of no page', 'invalid_argument', 'limit', () => call('deadLetters', 'list', { limit: 1e9 })],
]

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = [value]
  return value
}

test.each(cases)('%s is refused with %s and stores nothing', async (_what, code, path, work) => {
  const before = await stored()
  const error = await refusal(work)
  expect({ code: error.code, message: error.message }).toEqual({ code, message: expect.stringMatching(/.{10}/) })
  if (path !== null) {
    expect(error.complaints.map((complaint) => complaint.path)).toContain(path)
    for (const { message } of error.complaints) expect(message).toMatch(/.{5}/)
  }
  expect(error.message.length).toBeLessThan(1_000)
  expect(await stored()).toEqual(before)
})

test.each<[what: string, path: string | null, values: unknown[]]>([
  ['no function', null, ['q']],
  ['a queue that is no name', 'queue', ['a b', () => {}]],
  ['a concurrency of 0', 'concurrency', ['q', () => {}, { concurrency: 0 }]],
  ['a concurrency that is a text', 'concurrency', ['q', () => {}, { concurrency: '5' }]],
  ['an unknown option', 'concurency', ['q', () => {}, { concurency: 5 }]],
  ['null for options', null, ['q', () => {}, null]],
  ['a tenant that is no name', 'tenant', ['q', () => {}, { tenant: 5 }]],
])('handle with %s is refused', async (_what, path, values) => {
  const error = await refusal(() => (belfry.handle as unknown as Loose).call(belfry, ...values))
  expect(error.code).toBe('invalid_argument')
  if (path !== null) expect(error.complaints.map((complaint) => complaint.path)).toContain(path)
})

test.each<[what: string, path: string | null, options: unknown]>([
  ['null', null, null],
  ['a text', null, 'postgres://localhost'],
  ['an unknown option', 'databse', { databse: 'x' }],
  ['a schema that is no name', 'schema', { schema: 'a"; drop schema public; --' }],
  ['a database that is a number', 'database', { database: 5 }],
  ['a database that is an empty text', 'database', { database: '' }],
  ['a database that is null', 'database', { database: null }],
  ['a lease of half a second', 'leaseMs', { leaseMs: 500 }],
  ['a lease that is a text', 'leaseMs', { leaseMs: '30s' }],
  ['a fraction of a shard', 'shards', { shards: 1.5 }],
  ['a data directory that is a number', 'dataDir', { dataDir: 5 }],
  ['a logger that cannot log', 'logger', { logger: {} }],
])('Belfry.start with %s is refused', async (_what, path, options) => {
  const error = await refusal(() => (Belfry.start as unknown as Loose).call(Belfry, options))
  expect(error.code).toBe('invalid_option')
  if (path !== null) expect(error.complaints.map((complaint) => complaint.path)).toContain(path)
})

test.each([undefined, null, 7, '', 'x', {}, '019A8D3E-1F2A-7007-8ABC-0123456789AB'])(
  'what is no id (%j) names nothing',
  async (id) => {
    expect([await call('jobs', 'get', id), await call('runs', 'get', id), await call('runs', 'logs', id)]).toEqual([
      null,
      null,
      [],
    ])
  },
)

test('calls after stop are refused as stopped', async () => {
  const { connection, schema } = database
  const stopped = await Belfry.start({ database: connection, schema })
  await stopped.stop()
  for (const work of [
    () => stopped.jobs.create({ queue: 'q' }),
    () => stopped.jobs.createMany([{ queue: 'q' }]),
    () => stopped.jobs.cancel(jobId),
    () => stopped.jobs.get(jobId),
    () => stopped.ping(),
  ]) {
    expect((await refusal(work)).code).toBe('stopped')
  }
})

test('every code that is thrown is in the catalogue', () => {
  for (const [, code] of cases) expect(ERRORS[code].status).toBeGreaterThanOrEqual(400)
})
