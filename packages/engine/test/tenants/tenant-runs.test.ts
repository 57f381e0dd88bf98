import { expect, test } from 'vitest'
import { HOUR } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

const UNKNOWN = '019a8d3e-1f2a-7001-8abc-0123456789ab.mjx1'
const HOSTILE = [
  '',
  'x',
  UNKNOWN.slice(0, 36),
  `${UNKNOWN.slice(0, 37)}-2bfuyo2zls0`,
  `${UNKNOWN}\0`,
  'a.b',
  '.'.repeat(70_000),
]

/** A handler that fails until it is told otherwise. */
async function withDeadLetters(count: number) {
  const t = await startTenants()
  let fails = true
  for (const tenant of ['default', 'other'])
    await t.kit.handle(`q-${tenant}`, () => (fails ? Promise.reject(new Error('no')) : 'yes'), { tenant })
  const make = async (view: typeof t.own, queue: string, howMany: number) => {
    const jobs = Array.from({ length: howMany }, () => ({ queue, retry: { maxAttempts: 1 } }))
    await view.jobs.createMany(jobs)
    await t.kit.settle()
    return (await view.deadLetters.list({ limit: 1_000 })).items.map(({ runId }) => runId)
  }
  const mine = await make(t.own, 'q-default', count)
  const theirs = await make(t.other, 'q-other', 2)
  return {
    ...t,
    mine,
    theirs,
    mend: () => {
      fails = false
    },
  }
}

test("another tenant's run is answered as one that does not exist, whatever is asked of it", async () => {
  const { own, other, mine, theirs } = await withDeadLetters(1)
  const calls = {
    get: (id: string) => own.runs.get(id),
    logs: (id: string) => own.runs.logs(id),
    cancel: (id: string) => own.runs.cancel(id),
    retry: (id: string) => own.runs.retry(id),
    'dead letter': (id: string) => own.deadLetters.get(id),
    'delete dead letter': (id: string) => own.deadLetters.delete(id),
  }
  const foreign = theirs[0] as string
  for (const [name, call] of Object.entries(calls)) {
    const [of, none] = [await refusalOf(call(foreign)), await refusalOf(call(UNKNOWN))]
    expect(of.code, name).toBe('not_found')
    expect(of.message.replace(foreign, UNKNOWN), name).toBe(none.message)
    for (const hostile of HOSTILE)
      expect((await refusalOf(call(hostile))).code, `${name} ${hostile.slice(0, 60)}`).toBe('not_found')
  }
  expect(await own.deadLetters.redrive({ runIds: [foreign, UNKNOWN, ...HOSTILE] })).toEqual({ count: 0, runIds: [] })
  expect((await other.deadLetters.list({})).items).toHaveLength(2)
  expect((await own.deadLetters.list({})).items.map(({ runId }) => runId)).toEqual(mine)
  expect((await own.runs.list({})).items.map(({ id }) => id)).toEqual(mine)
})

test('dead letters are opened again by filter or id, once each, and a dry run opens none', async () => {
  const { kit, own, mine, mend } = await withDeadLetters(7)
  mend()
  expect((await own.deadLetters.redrive({ filter: {}, dryRun: true })).count).toBe(7)
  expect((await own.deadLetters.redrive({ filter: { failureClass: 'http_5xx' } })).count).toBe(0)
  expect((await own.deadLetters.redrive({ filter: { queue: 'q-other' } })).count).toBe(0)
  expect((await own.deadLetters.redrive({ runIds: mine.slice(0, 2) })).runIds.sort()).toEqual(mine.slice(0, 2).sort())
  const both = await Promise.all([own.deadLetters.redrive({ filter: {} }), own.deadLetters.redrive({ filter: {} })])
  expect(both[0].count + both[1].count).toBe(5)
  await kit.settle()
  for (const id of mine) expect(await own.runs.get(id)).toMatchObject({ status: 'succeeded', attempt: 2 })
  expect((await own.deadLetters.list({})).items).toEqual([])
  for (const wrong of [{}, { filter: {}, runIds: [] }, { filter: { job: 'x' } }, { runIds: 'x' }])
    expect((await refusalOf(own.deadLetters.redrive(wrong as never))).code).toBe('invalid_argument')
})

test('a dead letter can be dropped; its history stays', async () => {
  const { own, mine, query } = await withDeadLetters(1)
  const id = mine[0] as string
  expect(await own.deadLetters.get(id)).toMatchObject({ runId: id, failureClass: 'handler_error', tenant: 'default' })
  await own.deadLetters.delete(id)
  expect((await refusalOf(own.deadLetters.get(id))).code).toBe('not_found')
  expect((await refusalOf(own.deadLetters.delete(id))).code).toBe('not_found')
  expect(await own.runs.get(id)).toMatchObject({ status: 'failed', attempts: [{ response: null, statusCode: null }] })
  const changes = await query<{ actor: string }>(`select actor from job_changes where action = 'delete_dead_letter'`)
  expect(changes).toEqual([{ actor: 'bk_own' }])
})

test('runs are listed by failure class and by when they ended or are due', async () => {
  const { kit, own, mine } = await withDeadLetters(2)
  const start = kit.now()
  await own.jobs.create({ queue: 'idle' })
  kit.clock.advance(HOUR)
  await own.jobs.create({ queue: 'idle' })
  const count = async (filter: Parameters<typeof own.runs.list>[0]) => (await own.runs.list(filter)).items.length
  expect(await count({})).toBe(4)
  expect((await own.runs.list({ failureClass: 'handler_error' })).items.map(({ id }) => id)).toEqual(mine)
  expect(await count({ failureClass: 'timeout' })).toBe(0)
  expect(await count({ from: kit.now() })).toBe(1)
  expect(await count({ to: kit.now() })).toBe(3)
  expect(await count({ from: start, to: new Date(start.getTime() + 1) })).toBe(3)
  const [jobId] = (mine[0] as string).split('.')
  expect(await count({ jobId: jobId as string, failureClass: 'handler_error', from: start })).toBe(1)
  expect(await count({ jobId: jobId as string, from: kit.now() })).toBe(0)
  expect((await own.deadLetters.list({ from: kit.now() })).items).toEqual([])
  expect((await own.deadLetters.list({ to: kit.now() })).items).toHaveLength(2)
  for (const wrong of [
    { failureClass: 'http_5x' },
    { from: 'yesterday' },
    { to: new Date('x') },
    { queue: '\0' },
    { queue: '\ud800' },
  ])
    expect((await refusalOf(own.runs.list(wrong as never))).code, JSON.stringify(wrong)).toBe('invalid_argument')
  for (const extreme of [new Date(8.64e15), new Date(-8.64e15)]) await own.runs.list({ from: extreme, to: extreme })
})

test('no cursor that somebody made up is more than refused', async () => {
  const { own } = await withDeadLetters(1)
  const cursorOf = (...parts: (string | number)[]) => Buffer.from(parts.join('~')).toString('base64url')
  const id = UNKNOWN.slice(0, 36)
  const cursors = [
    ...['', 'x', '~~~~', 'a'.repeat(10_000), '%00', cursorOf('\0')],
    ...[
      cursorOf('past', '9999999999999999', id, '9999999999999999', 1),
      cursorOf('live', 0, id, '-9999999999999999', 0),
    ],
    ...[
      cursorOf('past', 0, id, 0, 99_999_999_999),
      cursorOf('past', '99999999999999', id, '-99999999999999', '999999999'),
    ],
    ...[
      cursorOf('9999999999999999', id, '1'),
      cursorOf('-99999999999999', id, '99999999999999'),
      cursorOf(id),
      cursorOf('q\0'),
    ],
  ]
  const lists = {
    jobs: (cursor: string) => own.jobs.list({ cursor }),
    runs: (cursor: string) => own.runs.list({ cursor }),
    'runs of a job': (cursor: string) => own.runs.list({ cursor, jobId: id }),
    'dead letters': (cursor: string) => own.deadLetters.list({ cursor }),
    queues: (cursor: string) => own.queues.list({ cursor }),
  }
  for (const [name, list] of Object.entries(lists))
    for (const cursor of cursors) {
      const code = await list(cursor).then(
        () => 'invalid_argument',
        (error: { code: string }) => error.code,
      )
      expect(code, `${name} ${Buffer.from(cursor, 'base64url')}`).toBe('invalid_argument')
    }
})
