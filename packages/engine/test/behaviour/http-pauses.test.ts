import { expect, test } from 'vitest'
import { Jobs } from '../../src/jobs.ts'
import { Tenant } from '../../src/tenant.ts'
import { TenantScope } from '../../src/tenant-scope.ts'
import { type HttpNode, ok, startHttpNodes, startTarget } from './http-kit.ts'
import { MINUTE, SECOND, START } from './kit.ts'

const OTHER = 2

async function setup(options: Parameters<typeof startHttpNodes>[0] = {}) {
  const t = await startHttpNodes(options)
  await t.query(`insert into tenants (id, name) values (${OTHER}, 'other')`)
  const target = await startTarget(t.clock, ok)
  const tenantOf = (name: string, tenantId: number, node: HttpNode = t.node) => {
    const reader = { of: () => node.db, asOf: async () => null }
    const caller = { tenant: name, tenantId, actor: `bk_${name}` }
    return new Tenant(new TenantScope(caller, node.engine, { fresh: reader, lists: reader } as never))
  }
  const call = (tenant: string, path: string, count = 1) =>
    t.jobs.createMany(Array(count).fill({ tenant, http: { url: `${target.url}${path}` } }))
  const paths = () => target.seen.map(({ path }) => path)
  return { ...t, target, call, paths, tenantOf, own: tenantOf('default', 1), other: tenantOf('other', OTHER) }
}

test("a paused tenant's calls in the shared queue hold up nobody, lose nothing, and start soon after the resume", async () => {
  const t = await setup()
  const { pause } = await t.other.pauses.create({ tenant: true })
  await t.settle()
  await t.call('other', '/paused', 300)
  await t.call('default', '/goes-on', 3)
  await t.settle()
  expect(t.paths()).toEqual(['/goes-on', '/goes-on', '/goes-on'])
  const waiting = await t.query(`select state, failures, attempt from runs`)
  expect(waiting).toHaveLength(300)
  expect(waiting.every(({ state, failures }) => state === 2 && failures === 0)).toBe(true)
  // They are aside: whatever comes later does not meet them again.
  await t.call('default', '/later')
  await t.pass(30 * MINUTE)
  expect(t.paths().filter((path) => path === '/later')).toHaveLength(1)
  expect(await t.query('select max(attempt) from runs')).toEqual([{ max: 1 }])
  await t.other.pauses.end(pause.id as string)
  await t.settle()
  await t.pass(2 * SECOND, 100)
  expect(t.paths().filter((path) => path === '/paused')).toHaveLength(300)
  const ends = await t.query(
    `select count(*)::int as runs, max(number) as attempts from attempts where final and tenant_id = ${OTHER}`,
  )
  expect(ends).toEqual([{ runs: 300, attempts: 2 }])
})

test('a paused origin is not called by its tenant, other targets and other tenants are', async () => {
  const t = await setup()
  const elsewhere = await startTarget(t.clock, ok)
  const { pause } = await t.own.pauses.create({ origin: t.target.url })
  await t.settle()
  const [held] = await t.call('default', '/held')
  await t.call('other', '/other')
  await t.jobs.create({ http: { url: elsewhere.url } })
  await t.pass(MINUTE)
  expect(t.paths()).toEqual(['/other'])
  expect(elsewhere.seen).toHaveLength(1)
  expect(await t.own.jobs.explain(held?.jobId as string, new Date(START))).toMatchObject({
    reason: 'origin_paused',
    sentence: expect.stringContaining(`while calls to ${t.target.url} are paused by bk_default`),
  })
  await t.own.pauses.end(pause.id as string)
  await t.settle()
  await t.pass(SECOND, 100)
  expect(t.paths()).toEqual(['/other', '/held'])
})

test('the end of a pause calls back its own runs alone, and what is made ready stands at no gate any more', async () => {
  const t = await setup()
  t.target.answer = () => {}
  const { pause } = await t.other.pauses.create({ tenant: true })
  await t.own.pauses.create({ origin: t.target.url })
  await t.settle()
  await t.call('other', '/other', 2)
  await t.call('default', '/own', 2)
  await t.settle()
  expect(await t.query('select from runs where state = 2 and gate_key is not null')).toHaveLength(4)
  await t.other.pauses.end(pause.id as string)
  await t.pass(2 * SECOND, 100)
  expect(t.paths()).toEqual(['/other', '/other'])
  const ofTenants =
    'select tenant_id, state, gate_key is null as free, count(*)::int as n from runs group by 1, 2, 3 order by 1'
  expect(await t.query(ofTenants)).toEqual([
    { tenant_id: 1, state: 2, free: false, n: 2 },
    { tenant_id: OTHER, state: 1, free: true, n: 2 },
  ])
})

test('a pause survives a restart, and so does its end', async () => {
  const t = await setup()
  const { pause } = await t.other.pauses.create({ tenant: true })
  await t.node.stop()
  const second = await t.startNode(7)
  await new Jobs(second.engine).create({ tenant: 'other', http: { url: `${t.target.url}/paused` } })
  while ((await second.step()) > 0);
  expect(t.paths()).toEqual([])
  // It dies after the end was committed, and before anything was called back.
  await t.tenantOf('other', OTHER, second).pauses.end(pause.id as string)
  await second.kill()
  const third = await t.startNode(8)
  await third.engine.pulse.runOnce()
  expect((await third.engine.waking.waker.runOnce()).woken).toBeGreaterThan(0)
  t.clock.advance(SECOND)
  while ((await third.step()) > 0);
  expect(new Set(t.paths())).toEqual(new Set(['/paused']))
})

test('another node that has not heard of the end sends a run away once more: it is called back all the same', async () => {
  const t = await setup({ nodes: 2 })
  const [a, b] = t.nodes as [HttpNode, HttpNode]
  const { pause } = await t.other.pauses.create({ tenant: true })
  await t.settle()
  await t.other.pauses.end(pause.id as string)
  await a.engine.pulse.runOnce()
  await a.engine.waking.waker.runOnce()
  const [made] = await t.call('other', '/late')
  // Only b works: it still believes in the pause.
  const httpQueue = await b.engine.registry.httpQueueId()
  b.engine.handlers.hint(httpQueue, 5, Number.MIN_SAFE_INTEGER)
  await b.engine.handlers.claimer(httpQueue)?.runOnce()
  await b.rest()
  expect(await t.query('select state from runs where job_id = $1', [made?.jobId])).toEqual([{ state: 2 }])
  t.clock.advance(SECOND)
  await t.settle()
  await t.pass(SECOND, 100)
  expect(t.paths()).toEqual(['/late'])
})

test('pauses of other tenants, however many, keep none from being known, and there are no more than nodes are told of', async () => {
  const t = await setup()
  const fill = (kind: number, count: number) =>
    t.query(
      `insert into pauses (paused_at, id, tenant_id, kind, name, paused_by)
       select to_timestamp(0), gen_random_uuid(), ${OTHER}, ${kind}, 'n' || n, 'bk_other' from generate_series(1, ${count}) n`,
    )
  await fill(1, 11_500)
  await t.own.pauses.create({ origin: t.target.url })
  await t.settle()
  expect(t.node.engine.known.paused.hasOrigin(1, t.target.url)).toBe(true)
  await fill(2, 10_000)
  const refused = { code: 'quota_exceeded', message: expect.stringContaining('an installation may have 10000 pauses') }
  await expect(t.own.pauses.create({ tenant: true })).rejects.toMatchObject(refused)
  await t.own.pauses.create({ key: 'mine' })
  await t.query(
    `insert into queues (id, tenant_id, name, created_at, max_depth)
     select 100000 + n, ${OTHER}, 'q' || n, to_timestamp(0), 5 from generate_series(1, 10000) n`,
  )
  await t.own.queues.put('set', {})
  await expect(t.own.queues.put('set', { maxDepth: 1 })).rejects.toMatchObject({ code: 'quota_exceeded' })
})

test('a run that a limit of its target put aside is explained by the limit that there is now, if there is one', async () => {
  const t = await setup()
  t.target.answer = () => {}
  await t.own.origins.put(t.target.url, { maxRunning: 1 })
  await t.call('default', '/', 2)
  await t.settle()
  const [aside] = await t.query<{ job_id: string }>('select job_id from runs where state = 2')
  const explain = () => t.own.jobs.explain(aside?.job_id ?? '')
  const { reason, sentence } = await explain()
  expect([reason, sentence]).toEqual(['origin_limited', expect.stringContaining('is limited to 1 run at a time')])
  await t.query(`update limits set max_running = 2 where kind = 2`)
  expect((await explain()).sentence).toContain('is limited to 2 runs at a time')
  await t.query(`delete from limits where kind = 2`)
  const freed = await explain()
  expect([freed.reason, freed.sentence]).toEqual(['snoozed', expect.not.stringContaining('limit')])
})
