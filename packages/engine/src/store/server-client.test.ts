import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, inject, onTestFinished, test } from 'vitest'
import { silentLogger } from '../runtime/logger.ts'
import { Database } from './database.ts'

/** The server of the test run, behind others in a URL. */
function setup(others: readonly string[]) {
  const { user, password = '', host, port, database } = inject('postgres')
  const servers = [...others, `${encodeURIComponent(host)}:${port}`]
  const connection = `postgres://${user}:${encodeURIComponent(password)}@${servers.join(',')}/${database}`
  const db = new Database({ connection, schema: 'belfry', logger: silentLogger })
  onTestFinished(() => db.close())
  const ask = async () => {
    const client = await db.connect()
    return (await client.query('select 1 as one').finally(() => client.end())).rows
  }
  return { ask }
}

const listening = async () => {
  const server = createServer(() => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('servers that are off or out of reach are passed over', async () => {
  const { server, address: off } = await listening()
  await once(server.close(), 'close')
  const t = setup([off, '255.255.255.255:5432'])
  expect(await t.ask()).toEqual([{ one: 1 }])
})

test('a server that takes connections and says nothing is passed over', async () => {
  const { server, address } = await listening()
  onTestFinished(() => void server.close())
  expect(await setup([address]).ask()).toEqual([{ one: 1 }])
})

test('while none can be reached the error says of each why, and not where it is', async () => {
  const { server, address } = await listening()
  await once(server.close(), 'close')
  const { database } = inject('postgres')
  const connection = `postgres://me@${address},255.255.255.255/${database}`
  const db = new Database({ connection, schema: 'belfry', logger: silentLogger })
  onTestFinished(() => db.close())
  const refused = {
    code: 'database_unavailable',
    message: 'no server of the database takes writes: 1 cannot be reached, 2 cannot be reached',
  }
  await expect(db.connect()).rejects.toMatchObject(refused)
  await expect(db.transaction(async () => {})).rejects.toMatchObject(refused)
})
