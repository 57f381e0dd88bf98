import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Api, type Call, startApi } from './api.ts'
import { Chance } from './chance.ts'
import { Generator } from './generate.ts'
import { Document, type Operation } from './openapi.ts'
import { type Owner, type Thing, thingOf, thingOfBody, thingOfQuery } from './things.ts'

/**
 * Every operation of the OpenAPI document, with the ids of another tenant and with keys that must not do. Nothing is
 * listed here: a new route is covered as soon as it is described.
 */
const document = await Document.load()
const generator = new Generator(document, new Chance(1))
const protectedOperations = document.operations.filter(({ scopes }) => scopes !== null)

/** What each scope may do beside itself. */
const IMPLIED: Record<string, string[]> = {
  read: ['read'],
  write: ['write', 'read'],
  worker: ['worker'],
  admin: ['admin', 'write', 'worker', 'read'],
}

/** The scopes that are not enough for an operation; a key may have all of them. Empty: every key may. */
const lacking = ({ scopes }: Operation): string[] =>
  Object.keys(IMPLIED).filter((scope) => !IMPLIED[scope]?.some((implied) => scopes?.includes(implied)))

let api: Api
/** The other tenant, whose things are asked for, and the one that asks. */
let other: Owner
let everything: string
let asking: { id: string; call: Call; with(scopes: string[]): Promise<Call> }
const stale: Record<string, string> = {}

beforeAll(async () => {
  api = await startApi()
  const [owner, asker] = [await api.tenant('other', ['admin']), await api.tenant('asking', ['admin'])]
  other = { api, id: owner.id, name: 'other', call: owner.call }
  const key = async (scopes: string[], more = {}) =>
    (
      await api.call<{ id: string; key: string }>('POST /v1/api-keys', {
        tenantId: asker.id,
        name: 'k',
        scopes,
        ...more,
      })
    ).body
  const calls = new Map<string, Call>()
  const callWith = async (scopes: string[]): Promise<Call> => {
    const call = calls.get(scopes.join()) ?? api.as((await key(scopes)).key)
    calls.set(scopes.join(), call)
    return call
  }
  asking = { id: asker.id, call: asker.call, with: callWith }
  const revoked = await key(['admin'])
  await api.call(`DELETE /v1/api-keys/${revoked.id}`)
  const expired = await key(['admin'])
  await api.query(`update api_keys set expires_at = now() - interval '1 minute' where id = $1`, [expired.id])
  everything = await rowsOfTenant()
  Object.assign(stale, { revoked: revoked.key, expired: expired.key, unknown: `${asker.key.slice(0, -4)}zzzz` })
})

afterAll(() => api.stop())

interface Filled {
  line: string
  body: unknown
  headers: Record<string, string>
}

/** The operation with its parameters filled and the smallest body that it takes. */
function fill(operation: Operation, values: Record<string, string>, query: [string, string][] = []): Filled {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
  const search = query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  const { body } = operation
  const isJson = body?.contentType === 'application/json'
  return {
    line: `${operation.method} ${path}${search === '' ? '' : `?${search}`}`,
    body: body === null ? undefined : isJson ? generator.smallest(body.schema) : 'some bytes',
    headers: body === null || isJson ? {} : { 'content-type': body.contentType },
  }
}

const pathNames = ({ parameters }: Operation): string[] =>
  parameters.filter((one) => one.in === 'path').map(({ name }) => name)

async function valuesFor(operation: Operation, how: (thing: Thing) => string | Promise<string>) {
  const values: Record<string, string> = {}
  for (const name of pathNames(operation)) values[name] = await how(thingOf(operation, name))
  return values
}

/** All rows of a tenant, of every table that has any: one statement, because it is asked hundreds of times. */
async function rowsOfTenant(): Promise<string> {
  const tables = await api.query<{ name: string; key: string }>(
    `select c.relname::text as name, a.attname::text as key from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and (a.attname = 'tenant_id' or (c.relname = 'tenants' and a.attname = 'id'))`,
  )
  expect(tables.length).toBeGreaterThan(10)
  return tables
    .map(
      ({ name, key }) => `select '${name}' as "table", coalesce(string_agg(x.row, e'\n' order by x.row), '') as rows
       from (select (row_to_json(t)::jsonb - array['used_at', 'seen_at', 'in_flight'])::text as row
             from ${name} t where ${key} = $1) x`,
    )
    .join(' union all ')
}

/** All that the database holds of the other tenant. */
async function holdings(): Promise<Record<string, string>> {
  const held = await api.query<{ table: string; rows: string }>(everything, [other.id])
  return Object.fromEntries(held.map(({ table, rows }) => [table, rows]))
}

/** The value as a whole word, as it is or as it stands in an address. */
function wherever(value: string): RegExp {
  const forms = [value, encodeURIComponent(value)].map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`(?<![\\w-])(?:${forms.join('|')})(?![\\w-])`, 'g')
}

const TIMES = /\d{4}-\d\d-\d\dT[\d:.]+Z/g

/** What was answered, without what was asked for, so that two answers can be compared. */
async function answerTo(call: Call, { line, body, headers }: Filled, values: string[]) {
  const answer = await call(line, body, headers)
  let text = JSON.stringify(answer.body)
  for (const value of values) text = text.replace(wherever(value), '<it>')
  const names = [...answer.headers.keys()].filter((name) => name !== 'content-length')
  return { status: answer.status, body: text.replace(TIMES, '<time>'), headers: names.sort() }
}

describe('with the ids of another tenant', () => {
  const operations = protectedOperations.filter((operation) => pathNames(operation).length > 0)

  test.each(operations)('$title answers as if they did not exist, and changes nothing', async (operation) => {
    const things = pathNames(operation).map((name) => thingOf(operation, name))
    const foreign = await valuesFor(operation, (thing) => thing.make(other))
    const unknown = await valuesFor(operation, (thing) => thing.unknown())
    const before = await holdings()
    const toForeign = await answerTo(asking.call, fill(operation, foreign), Object.values(foreign))
    const toUnknown = await answerTo(asking.call, fill(operation, unknown), Object.values(unknown))
    // A name may be taken by each tenant for itself, so putting something there is allowed; a queue is there once it is named.
    const makes = operation.method === 'PUT' || operation.title === 'POST /v1/queues/{queue}/lease'
    const mayMake = makes && things.every(({ isNamed }) => isNamed)
    if (mayMake) {
      expect(withoutIds(toForeign)).toEqual(withoutIds(toUnknown))
      expect(toForeign.status).toBeLessThan(300)
    } else {
      expect(toForeign).toEqual(toUnknown)
      expect(toForeign).toMatchObject({ status: 404, body: expect.stringContaining('"code":"not_found"') })
    }
    expect(await holdings()).toEqual(before)
  })

  const filters = protectedOperations.flatMap((operation) =>
    operation.parameters.flatMap(({ in: place, name }) => {
      const thing = place === 'query' ? thingOfQuery(name) : null
      return thing === null ? [] : [{ operation, name, thing, title: `${operation.title}?${name}=` }]
    }),
  )

  test.each(filters)('$title finds what it finds for an id that does not exist', async ({ operation, name, thing }) => {
    const owner = { ...other, id: asking.id, name: 'asking', call: asking.call }
    const values = await valuesFor(operation, (one) => one.make(owner))
    const [foreign, unknown] = [await thing.make(other), thing.unknown()]
    const toForeign = await answerTo(asking.call, fill(operation, values, [[name, foreign]]), [foreign])
    const toUnknown = await answerTo(asking.call, fill(operation, values, [[name, unknown]]), [unknown])
    expect(toForeign).toEqual(toUnknown)
    expect(toForeign.status).toBeLessThan(500)
  })

  const bodies = protectedOperations.flatMap((operation) => {
    if (operation.body?.contentType !== 'application/json') return []
    const { properties = {} } = document.resolve(operation.body.schema)
    return Object.keys(properties).flatMap((name) => {
      const thing = thingOfBody(name)
      return thing === null ? [] : [{ operation, name, thing, title: `${operation.title} with ${name}` }]
    })
  })

  test.each(bodies)('$title does what it does for one that does not exist', async ({ operation, name, thing }) => {
    const owner = { ...other, id: asking.id, name: 'asking', call: asking.call }
    const [foreign, unknown] = [await thing.make(other), thing.unknown()]
    const before = await holdings()
    const ask = async (value: string) => {
      const values = await valuesFor(operation, (one) => one.make(owner))
      const body = { ...generator.required(operation.body?.schema ?? {}), [name]: thing.hold(value) }
      return answerTo(asking.call, { ...fill(operation, values), body }, [value, ...Object.values(values)])
    }
    const [toForeign, toUnknown] = [await ask(foreign), await ask(unknown)]
    expect(withoutIds(toForeign)).toEqual(withoutIds(toUnknown))
    expect(toForeign.status).toBeLessThan(500)
    expect(await holdings()).toEqual(before)
  })

  test('the time of the answer does not tell an id that exists from one that does not', async () => {
    const operation = protectedOperations.find(({ title }) => title === 'GET /v1/runs/{runId}') as Operation
    const foreign = fill(operation, await valuesFor(operation, (thing) => thing.make(other)))
    const unknown = fill(operation, await valuesFor(operation, (thing) => thing.unknown()))
    const took = { foreign: [] as number[], unknown: [] as number[] }
    for (let i = 0; i < 150; i++) {
      for (const [name, { line }] of [
        ['foreign', foreign],
        ['unknown', unknown],
      ] as const) {
        const began = performance.now()
        await asking.call(line)
        took[name].push(performance.now() - began)
      }
    }
    const [one, two] = [median(took.foreign), median(took.unknown)]
    expect(Math.abs(one - two)).toBeLessThan(Math.max(1, 0.5 * Math.min(one, two)))
  })
})

describe('with a key that may not', () => {
  test.each(protectedOperations)('$title is refused and changes nothing', async (operation) => {
    const values = await valuesFor(operation, (thing) => thing.make(other))
    const filled = fill(operation, values)
    const before = await holdings()
    const scopes = lacking(operation)
    if (scopes.length > 0) {
      const call = await asking.with(scopes)
      const { body } = await call(filled.line, filled.body, filled.headers)
      expect(body).toMatchObject({ status: 403, code: 'forbidden' })
    }
    for (const key of [null, ...Object.values(stale)]) {
      const { body, headers } = await api.as(key)(filled.line, filled.body, filled.headers)
      expect(body).toMatchObject({ status: 401, code: 'unauthorized' })
      expect(headers.get('www-authenticate')).toContain('Bearer')
    }
    expect(await holdings()).toEqual(before)
  })
})

test.each(protectedOperations)('$title is open to a key with any one of its scopes', async (operation) => {
  const filled = fill(operation, await valuesFor(operation, (thing) => thing.unknown()))
  for (const scope of operation.scopes ?? []) {
    const call = await asking.with([scope])
    const { body } = await call(filled.line, filled.body, filled.headers)
    // Some ask for more than a scope; that is another refusal.
    expect(JSON.stringify(body), scope).not.toMatch(/"unauthorized"|needs a key with scope/)
  }
})

test('what needs no key is known, and nothing of it belongs to a tenant', () => {
  const open = document.operations.filter(({ scopes }) => scopes === null)
  for (const operation of open)
    for (const name of pathNames(operation)) expect(thingOf(operation, name).isToken, operation.title).toBe(true)
})

/** What has just been made has an id of its own. */
const withoutIds = ({ body, ...rest }: { status: number; body: string; headers: string[] }) => ({
  ...rest,
  body: body.replace(IDS, '<id>'),
})
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number
