import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { LeaseBoard } from '../src/worker/lease-board.ts'
import type { HeartbeatAnswer } from '../src/worker/lease-calls.ts'
import { ThreadHost } from '../src/worker/thread-host.ts'
import { keepingLogger, signal } from './worker-kit.ts'

const LEASE_MS = 1_000

/** A board, the thread that reads it, and a server that notes what the thread sends. */
async function setup(first: number) {
  const board = new LeaseBoard(4)
  const logger = keepingLogger()
  const sent = signal<{ authorization: string | undefined; body: unknown }>()
  const answered = signal<HeartbeatAnswer>()
  let calls = 0
  const server = createServer((request, answer) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      calls++
      if (calls < first) return answer.destroy()
      const body = JSON.parse(Buffer.concat(parts).toString()) as { leases: { token: string }[] }
      sent.resolve({ authorization: request.headers.authorization, body })
      answer.end(JSON.stringify({ leases: body.leases.map(({ token }) => ({ token, outcome: 'ok' })) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const thread = new ThreadHost({
    ...{ board, leaseMs: LEASE_MS, workerId: 'w', logger },
    address: { url: `http://127.0.0.1:${port}`, headers: { authorization: 'Bearer key' } },
    onAnswer: (answer) => answered.resolve(answer),
  })
  onTestFinished(async () => {
    await thread.stop()
    server.closeAllConnections()
    server.close()
  })
  return { board, thread, sent, answered, logger, calls: () => calls }
}

test('while nobody beats the thread renews what stands on the board, and says what it heard', async () => {
  const t = await setup(1)
  t.board.add('token-a')
  t.board.remove(t.board.add('token-b'))
  t.board.add('token-c')
  t.board.add('far too long'.repeat(20))
  t.thread.start()
  const leases = [{ token: 'token-a' }, { token: 'token-c' }]
  expect(await t.sent.promise).toEqual({ authorization: 'Bearer key', body: { workerId: 'w', leases } })
  expect(await t.answered.promise).toEqual({ leases: leases.map((lease) => ({ ...lease, outcome: 'ok' })) })
  expect(t.logger.lines).toEqual([])
})

test('the thread tries again when a connection breaks', async () => {
  const t = await setup(3)
  t.board.add('token-a')
  t.thread.start()
  await t.answered.promise
  expect(t.calls()).toBeGreaterThanOrEqual(3)
})
