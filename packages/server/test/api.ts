import { randomBytes } from 'node:crypto'
import { Belfry, type Logger, silentLogger } from '@belfry/engine'
import type pg from 'pg'
import { afterAll, beforeAll, inject } from 'vitest'
import { createDatabase, today } from '../../engine/test/database.ts'
import { startServer } from '../src/index.ts'

export interface Answer<Body> {
  status: number
  headers: Headers
  body: Body
}

export type Call = <Body = Record<string, unknown>>(
  line: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answer<Body>>

export interface Api {
  belfry: Belfry
  url: string
  port: number
  adminKey: string
  /** What the server and the engine logged as errors. */
  errors: string[]
  /** `call('POST /v1/jobs', {…})` with the installation's key. */
  call: Call
  /** The same with another key, or with none. */
  as(key: string | null): Call
  /** Makes a tenant with a key of these scopes. */
  tenant(name: string, scopes?: string[]): Promise<{ id: string; key: string; call: Call }>
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
  /** Only the server; the engine goes on. */
  stopServer(): Promise<void>
  stop(): Promise<void>
}

interface ApiOptions {
  allowPrivateTargets?: boolean
  requestTimeoutMs?: number
}

/** A node with its server, on a schema of its own. */
export async function startApi(options: ApiOptions = {}): Promise<Api> {
  const { requestTimeoutMs, ...engine } = options
  const { schema, query, drop } = await createDatabase({ days: today() })
  const errors: string[] = []
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => errors.push(`${message} ${JSON.stringify(fields, readable)}`),
  }
  const belfry = await Belfry.start({ database: inject('postgres'), schema, logger, ...engine })
  const timeout = requestTimeoutMs === undefined ? {} : { requestTimeoutMs }
  const adminKey = `admin_${randomBytes(24).toString('hex')}`
  const server = await startServer({ belfry: () => belfry, adminKey, host: '127.0.0.1', port: 0, logger, ...timeout })
  const url = `http://127.0.0.1:${server.port}`
  const as = (key: string | null) => caller(url, key)
  const call = as(adminKey)
  return {
    belfry,
    url,
    port: server.port,
    adminKey,
    errors,
    call,
    as,
    tenant: async (name, scopes = ['read', 'write']) => {
      const tenant = await call<{ id: string }>('POST /v1/tenants', { name })
      const made = await call<{ key: string }>('POST /v1/api-keys', { tenantId: tenant.body.id, name: 'test', scopes })
      if (made.status !== 201) throw new Error(`no key: ${JSON.stringify(made.body)}`)
      return { id: tenant.body.id, key: made.body.key, call: as(made.body.key) }
    },
    query,
    stopServer: () => server.stop(),
    stop: async () => {
      await server.stop()
      await belfry.stop()
      await drop()
    },
  }
}

/** An installation as one tenant of it sees it, with the installation's key. */
export interface OneTenant extends Omit<Api, 'belfry' | 'tenant'> {
  tenantId: number
  headers: Record<string, string>
  handle(queue: string, handler: Parameters<Belfry['handle']>[1]): void
}

/** One node for all tests of a file, which each have a tenant of their own. */
export function oneNodeForAll(): () => Promise<OneTenant> {
  let api: Api
  let tests = 0
  beforeAll(async () => {
    api = await startApi()
  })
  afterAll(() => api.stop())
  return async () => {
    const name = `tenant-${++tests}`
    const { id } = await api.tenant(name)
    const headers = { 'belfry-tenant': name }
    const call: Call = (line, body, more) => api.call(line, body, { ...headers, ...more })
    const handle: OneTenant['handle'] = (queue, handler) => api.belfry.handle(queue, handler, { tenant: name })
    return { ...api, call, handle, headers, tenantId: Number(id) }
  }
}

function caller(url: string, key: string | null): Call {
  return async (line, body, headers = {}) => {
    const [method = 'GET', path = '/'] = line.split(' ')
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    const isJson = /json/.test(answer.headers.get('content-type') ?? '')
    return { status: answer.status, headers: answer.headers, body: (isJson ? JSON.parse(text) : text) as never }
  }
}

const readable = (_name: string, value: unknown): unknown =>
  value instanceof Error ? `${value.message} ${value.stack} ${JSON.stringify(value.cause, readable)}` : value
