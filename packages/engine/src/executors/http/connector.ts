import type { LookupFunction, Socket } from 'node:net'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { AddressGuard } from './address-guard.ts'
import { invalidTarget } from './call-failed.ts'
import { type Destination, SocketOpener } from './open-socket.ts'

export interface ResolvedAddress {
  address: string
  family: number
}

export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>

/** Who caused a connection learns how long its parts took. */
export interface ConnectTimings {
  dnsMs?: number
  connectMs?: number
}

export interface ConnectorDeps {
  clock: Clock
  guard: AddressGuard
  resolve: Resolve
}

/** Whom a connection is made for. */
export interface ConnectionListener {
  opened(socket: Socket): void
  failed(error: Error): void
  /** The bytes are good until it returns. */
  read(piece: Buffer): void
}

/** The last is the call that the connection is made for, if any. What it answers gives the attempt up: nobody hears of it any more. */
export type GuardedConnector = (
  destination: Destination,
  listener: ConnectionListener,
  timings: ConnectTimings | null,
) => () => void

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Connects to addresses that the guard has seen, and to no others: the name is resolved once, here, and the sockets go to
 * that answer.
 */
export function guardedConnector({ clock, guard, resolve }: ConnectorDeps): GuardedConnector {
  const inFlight = new Map<string, Promise<ResolvedAddress[]>>()

  /** Many connections to a new host ask for its addresses once. */
  const allowedAddresses = (hostname: string): Promise<ResolvedAddress[]> => {
    let asked = inFlight.get(hostname)
    if (asked === undefined) {
      asked = resolve(hostname)
        .then((found) => onlyAllowed(guard, hostname, found))
        .finally(() => inFlight.delete(hostname))
      inFlight.set(hostname, asked)
    }
    return asked
  }

  /** Of the connection being started: `lookup` is called before `connect` returns. */
  let starting: { timings: ConnectTimings | null; startedAt: Instant; resolvedAt: Instant } | null = null

  const lookup: LookupFunction = (hostname, wanted, answer) => {
    const connection = starting
    allowedAddresses(hostname).then(
      (addresses) => {
        if (connection) {
          connection.resolvedAt = clock.now()
          if (connection.timings) connection.timings.dnsMs = connection.resolvedAt - connection.startedAt
        }
        const [first] = addresses
        if (wanted.all) answer(null, addresses)
        else answer(null, first?.address ?? '', first?.family)
      },
      (error: Error) => answer(error, []),
    )
  }
  const sockets = new SocketOpener(lookup)

  return (destination, listener, timings) => {
    const { hostname, port, isSecure } = destination
    // An address in the URL is never looked up.
    const refusal = guard.refusalOfHost(hostname)
    if (refusal !== null) {
      queueMicrotask(() => listener.failed(invalidTarget(refusal)))
      return () => {}
    }
    const startedAt = clock.now()
    const connection = { timings, startedAt, resolvedAt: startedAt }
    starting = connection
    const socket = sockets.open(destination, (piece) => listener.read(piece))
    starting = null

    const late = clock.timer(CONNECT_TIMEOUT_MS, () =>
      socket.destroy(new Error(`no connection to ${hostname}:${port} within ${CONNECT_TIMEOUT_MS / 1_000} s`)),
    )
    const failed = (error: Error) => {
      late.cancel()
      listener.failed(error)
    }
    socket.once('error', failed)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      late.cancel()
      socket.off('error', failed)
      const broken = whyUnusable(guard, socket)
      if (broken) {
        socket.destroy()
        return listener.failed(broken)
      }
      if (timings) timings.connectMs = clock.now() - connection.resolvedAt
      listener.opened(socket)
    })
    return () => {
      late.cancel()
      socket.destroy()
    }
  }
}

function whyUnusable(guard: AddressGuard, { remoteAddress }: Socket): Error | null {
  if (remoteAddress === undefined) return new Error('the connection was closed at once')
  const refusal = guard.refusalOfAddress(remoteAddress)
  return refusal === null ? null : invalidTarget(refusal)
}

function onlyAllowed(guard: AddressGuard, hostname: string, found: readonly ResolvedAddress[]): ResolvedAddress[] {
  const [first] = found
  if (!first) throw new Error(`${hostname} has no address`)
  const allowed = found.filter(({ address }) => guard.refusalOfAddress(address) === null)
  if (allowed.length > 0) return allowed
  throw invalidTarget(`${hostname} resolves to ${first.address}, which is not a public address`)
}
