import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { callTo, performed, startCaller, startReceiver, startSocketServer } from '../../../test/http-target.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'

/** A target that answers when it is told to, and knows its connections. */
async function setup(limit: number) {
  const asked: Socket[] = []
  const sockets = new Set<Socket>()
  let onAsked = (): void => {}
  const { url } = await startSocketServer((socket) => {
    sockets.add(socket)
    socket.on('data', () => {
      asked.push(socket)
      onAsked()
    })
  })
  const deps = startCaller({ connectionsPerOrigin: limit })
  const untilAsked = async (count: number): Promise<void> => {
    while (asked.length < count)
      await new Promise<void>((resolve) => {
        onAsked = resolve
      })
  }
  return { asked, sockets, untilAsked, call: (more = {}) => performed(callTo(deps, { url }, more), deps), deps }
}

test('calls one after the other use one connection', async () => {
  const t = await setup(4)
  for (let i = 0; i < 5; i++) {
    const call = t.call()
    await t.untilAsked(i + 1)
    t.asked[i]?.write(ANSWER)
    expect(await call).toMatchObject({ kind: 'succeeded' })
  }
  expect(t.sockets.size).toBe(1)
})

test('there are no more connections than allowed, and what is over goes on with the next that is free', async () => {
  const t = await setup(2)
  const calls = Array.from({ length: 5 }, () => t.call())
  for (let i = 0; i < 5; i++) {
    await t.untilAsked(i + 1)
    // The first is never answered: it holds its connection, not the calls behind it.
    if (i > 0) t.asked[i]?.write(ANSWER)
  }
  const rest = await Promise.all(calls.slice(1))
  expect(rest.map(({ kind }) => kind)).toEqual(Array(4).fill('succeeded'))
  expect(t.sockets.size).toBe(2)
  t.asked[0]?.write(ANSWER)
  expect(await calls[0]).toMatchObject({ kind: 'succeeded' })
})

test('a connection that was cut serves whoever waits for it', async () => {
  const t = await setup(1)
  const [cut, next] = [t.call(), t.call()]
  await t.untilAsked(1)
  t.asked[0]?.destroy()
  expect(await cut).toMatchObject({ kind: 'failed', failureClass: 'network', written: true })
  await t.untilAsked(2)
  t.asked[1]?.write(ANSWER)
  expect(await next).toMatchObject({ kind: 'succeeded' })
})

test('a call that is given up while it waits for a connection is never sent', async () => {
  const t = await setup(1)
  const first = t.call()
  const abort = new AbortController()
  const given = t.call({ signal: abort.signal })
  const last = t.call()
  abort.abort()
  expect(await given).toMatchObject({ kind: 'failed', failureClass: 'canceled', written: false })
  await t.untilAsked(1)
  t.asked[0]?.write(ANSWER)
  await t.untilAsked(2)
  t.asked[1]?.write(ANSWER)
  expect([(await first).kind, (await last).kind]).toEqual(['succeeded', 'succeeded'])
  expect(t.asked).toHaveLength(2)
})

test('a target that closes after each answer is connected to anew for each call', async () => {
  const { url, received } = await startReceiver((_, response) => {
    response.setHeader('connection', 'close')
    response.end('fine')
  })
  const deps = startCaller({ connectionsPerOrigin: 1 })
  const ends = await Promise.all(Array.from({ length: 3 }, () => performed(callTo(deps, { url }), deps)))
  expect(ends.map(({ kind }) => kind)).toEqual(Array(3).fill('succeeded'))
  expect(received).toHaveLength(3)
})

test('when the node stops, calls under way and calls that wait are cut, and no more are made', async () => {
  const t = await setup(1)
  const calls = [t.call(), t.call()]
  await t.untilAsked(1)
  t.deps.transport.close()
  calls.push(t.call())
  const ends = await Promise.all(calls)
  expect(ends).toMatchObject(Array(3).fill({ kind: 'failed', failureClass: 'network' }))
  expect(t.asked).toHaveLength(1)
})

test('answers that come in pieces, in turn on two connections, are kept apart', async () => {
  const t = await setup(2)
  const calls = [t.call(), t.call()]
  await t.untilAsked(2)
  const write = (i: number, text: string) => new Promise<void>((sent) => t.asked[i]?.write(text, () => sent()))
  for (const i of [0, 1]) await write(i, 'HTTP/1.1 200 OK\r\ncontent-')
  for (const i of [0, 1]) await write(i, `length: 8\r\nx-call: ${i}\r\n\r\n${i}${i}${i}${i}`)
  for (const i of [0, 1]) await write(i, `${i}${i}${i}${i}`)
  const records = (await Promise.all(calls)).map(({ record }) => record)
  expect(records.map((record) => record?.body).sort()).toEqual(['00000000', '11111111'])
  for (const record of records) expect(record?.body).toBe(record?.headers['x-call']?.repeat(8))
})

test('a connection that is being opened is given up when the node stops', async () => {
  let onClosed = (): void => {}
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve
  })
  let onConnected = (): void => {}
  const connected = new Promise<void>((resolve) => {
    onConnected = resolve
  })
  // It takes the connection and never says anything, so that no secure one comes of it.
  const { port } = await startSocketServer((socket) => {
    socket.on('data', () => {}).on('close', onClosed)
    onConnected()
  })
  const deps = startCaller({})
  const call = performed(callTo(deps, { url: `https://127.0.0.1:${port}/` }), deps)
  await connected
  deps.transport.close()
  expect(await call).toMatchObject({ kind: 'failed', failureClass: 'network', written: false })
  await closed
})
