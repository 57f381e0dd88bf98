import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { isConnectionLost } from './database.ts'

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
