import { connect, createServer, type Socket } from 'node:net'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { Belfry, silentLogger } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

/** One start is cut at every so many messages of the node. */
const STEP = 2

/** A way to the database that breaks all its connections once, after so many messages from the node. */
async function fragileWay({ host = '', port = 0 }: pg.ClientConfig, messages: number) {
  const open = new Set<Socket>()
  const way = { port: 0, heard: 0 }
  const server = createServer((node) => {
    const database = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port })
    for (const [socket, other] of [
      [node, database],
      [database, node],
    ] as const) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
    }
    database.pipe(node)
    node.on('data', (chunk) => {
      way.heard++
      if (way.heard === messages) for (const socket of open) socket.destroy()
      else database.write(chunk)
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  way.port = (server.address() as { port: number }).port
  return way
}

test('a node starts wherever in its start the database goes away', async () => {
  const t = await createDatabase({ days: today() })
  onTestFinished(() => t.drop())
  let isCut = true
  let starts = 0
  for (let messages = 1; isCut; messages += STEP) {
    const way = await fragileWay(t.connection, messages)
    const database = { ...t.connection, host: '127.0.0.1', port: way.port }
    const belfry = await Belfry.start({ database, schema: t.schema, logger: silentLogger, drainMs: 0 })
    isCut = way.heard >= messages
    starts++
    await belfry.stop()
  }
  expect(starts).toBeGreaterThan(5)
})
