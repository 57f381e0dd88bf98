import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { allStatements, type Statement } from '../src/store/statement.ts'
import { record, startKit } from './behaviour/kit.ts'

const PAGE = readFileSync(new URL('../../../docs/internals/locks.md', import.meta.url), 'utf8')
const SOURCES = fileURLToPath(new URL('../src', import.meta.url))
const LOCK = /\bfor (?:no key update|update|key share|share)\b(?! (?:of \w+ )?skip locked)/g

const rowsUnder = (heading: string): string[][] => {
  const section = PAGE.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return [...section.matchAll(/^\| (.+) \|$/gm)].slice(2).map(([, row]) => (row as string).split(' | '))
}
const wordsIn = (cell = ''): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, word]) => word as string)

/** The tables in the order in which transactions wait for their rows; those of one line have one place. */
const ORDER = rowsUnder('The order').map(([cell]) => wordsIn(cell))
const placeOf = (table: string): number => ORDER.findIndex((tables) => tables.includes(table))
/** What is sent against the order, and the statement that its transaction has sent before. */
const AGAINST = rowsUnder('Against the order').map(([sent, before]) => ({
  sent: wordsIn(sent),
  before: wordsIn(before),
}))

/** The table whose rows it locks: the last one that is named before it says so, and in no part that ends before. */
function tablesOf({ text }: Statement): string[] {
  const before = [...text.matchAll(LOCK)].map(({ index }) => text.slice(0, index).replace(/\(select [^()]*\)/g, ''))
  return [...new Set(before.map((part) => [...part.matchAll(/from belfry\.(\w+)/g)].at(-1)?.[1] ?? 'none'))]
}

async function waiting(): Promise<Map<string, string[]>> {
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.sql.ts')) await import(`${SOURCES}/${file}`)
  return new Map(
    allStatements()
      .filter(({ waitsForRows }) => waitsForRows)
      .map((one) => [one.name, tablesOf(one)]),
  )
}

test('the page on locks names each statement that waits for rows, and their table', async () => {
  const described = rowsUnder('Who waits').flatMap(([names, tables]) =>
    wordsIn(names).map((name) => [name, wordsIn(tables)] as const),
  )
  expect(Object.fromEntries(described)).toEqual(Object.fromEntries(await waiting()))
})

test('each table whose rows are waited for has its place in the order', async () => {
  const tables = new Set([...(await waiting()).values()].flat())
  expect([...tables].filter((table) => placeOf(table) < 0)).toEqual([])
})

/** Watches what all connections of this process send: the statements of each transaction, in their order. */
function watchTransactions(): string[][] {
  const done: string[][] = []
  const open = new WeakMap<object, string[]>()
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    const sent = given[0] as string | { name?: string }
    if (sent === 'begin') open.set(this, [])
    else if (sent === 'commit') done.push(open.get(this) ?? [])
    else if (typeof sent === 'object' && sent.name !== undefined) open.get(this)?.push(sent.name)
    return (query as (...args: unknown[]) => never).apply(this, given)
  } as typeof query
  onTestFinished(() => {
    pg.Client.prototype.query = query
  })
  return done
}

test('no transaction waits for rows against the order', async () => {
  const tables = await waiting()
  const { kit } = await startKit()
  const fail = { now: true }
  await record(kit, 'work', () => {
    if (fail.now) throw new Error('broken')
  })
  const sent = watchTransactions()
  const once = { queue: 'work', retry: { maxAttempts: 1 } }
  const { jobs } = await kit.batches.create(
    [
      { ...once, ref: 'a' },
      { ...once, ref: 'b', after: { jobs: ['a'] } },
      { ...once, ref: 'c', after: { jobs: ['a', 'b'] }, unique: { key: 'u' } },
    ],
    { onFinish: { queue: 'work' } },
  )
  await kit.settle()
  fail.now = false
  const [failed] = (await kit.runs.list({ jobId: String(jobs[0]?.jobId) })).items
  await kit.runs.retry(String(failed?.id))
  await kit.settle()
  const keyed = { ...once, name: 'named', idempotencyKey: 'i', concurrency: { key: 'k', limit: 1 } }
  const { jobId } = await kit.jobs.create({ ...keyed, every: 'PT1M', overlap: 'buffer_all' })
  const follower = await kit.jobs.create({ queue: 'work', after: { jobs: [jobId] } })
  await kit.jobs.trigger(jobId)
  await kit.jobs.pause(jobId)
  await kit.jobs.resume(jobId)
  await kit.jobs.update(jobId, { every: 'PT2M' })
  kit.clock.advance(600_000)
  await kit.settle()
  const replacing = {
    ...once,
    unique: { key: 'r', onConflict: 'replace' as const },
    runAt: new Date(kit.now().getTime() + 1_000),
  }
  for (const payload of [1, 2]) await kit.jobs.create({ ...replacing, payload })
  await kit.jobs.cancel(follower.jobId)
  await (await kit.tenant('default')).jobs.delete(jobId)
  const against = sent.flatMap((names) => {
    let furthest = -1
    return names.flatMap((name, nth) => {
      const before = names.slice(0, nth)
      const place = Math.min(...(tables.get(name) ?? []).map(placeOf))
      if (place === Number.POSITIVE_INFINITY) return []
      if (place >= furthest) furthest = place
      else if (!AGAINST.some((one) => one.sent.includes(name) && one.before.some((other) => before.includes(other))))
        return [`${name} after ${before.join(', ')}`]
      return []
    })
  })
  const seen = new Set(sent.flat().filter((name) => tables.has(name)))
  expect(against).toEqual([])
  expect([...seen].sort()).toEqual(expect.arrayContaining(['count_in_batches', 'lock_edges_of_children', 'lock_timer']))
})
