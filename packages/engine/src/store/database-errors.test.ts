import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { isConnectionLost, isContention, isOutage } from './database-errors.ts'

test('a database that takes connections and says nothing counts as away', async () => {
  const silent = createServer(() => {})
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const client = new pg.Client({ host: '127.0.0.1', port, connectionTimeoutMillis: 50 })
  client.on('error', () => {})
  const error = await client.connect().catch((reason: unknown) => reason)
  expect(isConnectionLost(error), String(error)).toBe(true)
})

test('a transaction that the database ended, because its node was stopped in the middle of it, counts as lost', async () => {
  const client = new pg.Client(inject('postgres'))
  const gone = new Promise<Error>((resolve) => client.once('error', resolve))
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  await client.query("set local idle_in_transaction_session_timeout = '10ms'")
  expect(isConnectionLost(await gone)).toBe(true)
})

const kindOf = (code: string): string => {
  const error = Object.assign(new Error('of the database'), { code })
  if (isConnectionLost(error)) return 'lost'
  if (isOutage(error)) return 'outage'
  return isContention(error) ? 'contention' : 'fault'
}

test.each([
  [
    'lost',
    ['08006', '08P01', '57P01', '57P02', '57P03', '57P04', '57P05', '25P03', '25P04', 'ECONNREFUSED', 'EHOSTUNREACH'],
  ],
  ['outage', ['25006', '53100', '53300', '58000', '58030', '58P01']],
  ['contention', ['40001', '40P01', '55P03']],
  ['fault', ['22012', '23505', '23514', '42501', '42P01', '53200', '57014', 'P0001', 'XX000']],
])('errors that mean %s are told by their codes', (kind, codes) => {
  expect(codes.map((code) => [code, kindOf(code)])).toEqual(codes.map((code) => [code, kind]))
})
