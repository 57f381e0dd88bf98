import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startSocketServer } from '../../../test/http-target.ts'
import { SystemClock } from '../../runtime/clock.ts'
import { AddressGuard } from './address-guard.ts'
import { CallFailed } from './call-failed.ts'
import { guardedConnector, type Resolve } from './connector.ts'

/** Takes 127.0.0.1 for a public address, so that a connection can succeed without the internet. */
class TestGuard extends AddressGuard {
  readonly asked: string[] = []

  constructor() {
    super({ allowPrivateTargets: false })
  }

  override refusalOfAddress(address: string): string | null {
    this.asked.push(address)
    return address === '127.0.0.1' ? null : super.refusalOfAddress(address)
  }
}

async function setup(options: { guard?: AddressGuard; resolve: Resolve }) {
  const sockets: Socket[] = []
  const { port } = await startSocketServer((socket) => sockets.push(socket))
  const guard = options.guard ?? new TestGuard()
  const connect = guardedConnector({ clock: new SystemClock(), guard, resolve: options.resolve })
  const to = (hostname: string): Promise<Socket | Error> =>
    new Promise((resolve) =>
      connect(
        { isSecure: false, hostname, port },
        {
          opened: (socket) => resolve(socket.destroy()),
          failed: resolve,
          read: () => {},
        },
        null,
      ),
    )
  return { to, sockets }
}

const ipv4 = (...addresses: string[]) => addresses.map((address) => ({ address, family: 4 }))

test('a name that changes its mind is judged again with every connection', async () => {
  const answers = [ipv4('127.0.0.1'), ipv4('127.0.0.2')]
  const { to, sockets } = await setup({ resolve: async () => answers.shift() ?? [] })
  expect(await to('rebinding.example')).not.toBeInstanceOf(Error)
  expect(await to('rebinding.example')).toBeInstanceOf(CallFailed)
  expect(sockets).toHaveLength(1)
})

test('the address that was judged is the one that is connected to, without asking again', async () => {
  let asked = 0
  const resolve = async () => ipv4(asked++ === 0 ? '127.0.0.1' : '127.0.0.2')
  const guard = new TestGuard()
  const { to } = await setup({ guard, resolve })
  const socket = await to('once.example')
  expect(socket).not.toBeInstanceOf(Error)
  expect(asked).toBe(1)
  // Once as the answer, once as the connected socket's own.
  expect(guard.asked).toEqual(['127.0.0.1', '127.0.0.1'])
})

test('of several addresses only those that may be called are tried', async () => {
  const { to, sockets } = await setup({ resolve: async () => ipv4('10.0.0.1', '127.0.0.1', '192.168.0.1') })
  const socket = await to('mixed.example')
  expect(socket).not.toBeInstanceOf(Error)
  expect(sockets).toHaveLength(1)
})

test('a socket that ends up elsewhere is closed before anything is sent', async () => {
  class Forgetful extends AddressGuard {
    #judged = 0
    override refusalOfAddress(address: string): string | null {
      return this.#judged++ === 0 ? null : super.refusalOfAddress(address)
    }
  }
  const guard = new Forgetful({ allowPrivateTargets: false })
  const { to } = await setup({ guard, resolve: async () => ipv4('127.0.0.1') })
  const refused = await to('elsewhere.example')
  expect(refused).toMatchObject({ failureClass: 'invalid_target', message: '127.0.0.1 is not a public address' })
})

test('an address that reached the connector is judged without a name', async () => {
  const { to, sockets } = await setup({ resolve: async () => [] })
  expect(await to('127.0.0.2')).toBeInstanceOf(CallFailed)
  expect(await to('::1')).toBeInstanceOf(CallFailed)
  expect(sockets).toEqual([])
})

test('connections that are made at once ask for the addresses once', async () => {
  let asked = 0
  const resolve = async () => {
    asked++
    return ipv4('127.0.0.1')
  }
  const { to } = await setup({ resolve })
  await Promise.all(Array.from({ length: 20 }, () => to('popular.example')))
  expect(asked).toBe(1)
})
