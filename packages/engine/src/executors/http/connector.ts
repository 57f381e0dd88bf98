import type { LookupFunction, Socket } from 'node:net'
import { buildConnector } from 'undici'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { AddressGuard } from './address-guard.ts'
import { invalidTarget } from './call-failed.ts'

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

/** The last is the call that the connection is made for, if any. */
export type GuardedConnector = (
  options: buildConnector.Options,
  callback: buildConnector.Callback,
  timings: ConnectTimings | null,
) => void

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
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup })

  return (options, callback, timings) => {
    // An address in the URL is never looked up.
    const refusal = guard.refusalOfHost(options.hostname)
    if (refusal !== null) return queueMicrotask(() => callback(invalidTarget(refusal), null))
    const startedAt = clock.now()
    const connection = { timings, startedAt, resolvedAt: startedAt }
    starting = connection
    connect(options, (error, socket) => {
      if (error) return callback(error, null)
      const broken = whyUnusable(guard, socket)
      if (broken) {
        socket.destroy()
        return callback(broken, null)
      }
      if (timings) timings.connectMs = clock.now() - connection.resolvedAt
      callback(null, socket)
    })
    starting = null
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
