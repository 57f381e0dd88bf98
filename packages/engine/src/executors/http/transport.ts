import type { Clock } from '../../runtime/clock.ts'
import { AddressGuard } from './address-guard.ts'
import { Connections } from './connections.ts'
import { guardedConnector, type Resolve } from './connector.ts'
import { Deadlines } from './deadlines.ts'
import { Exchange, type ExchangeTerms } from './exchange.ts'
import { dnsResolver, resolveLikeSystem } from './resolve-name.ts'
import { TargetUrls } from './target-url.ts'
import type { OutgoingRequest } from './write-request.ts'

export interface TransportOptions {
  clock: Clock
  /** Development only: calls may go to this machine and its network. */
  allowPrivateTargets: boolean
  /** Connections per origin; default 256. */
  connectionsPerOrigin?: number
  /** How names become addresses; default by asking the name servers, or in development the system's way. */
  resolve?: Resolve
}

const CONNECTIONS_PER_ORIGIN = 256
/** The node's way to targets: connections that are kept alive, one guard, one timer for all deadlines. */
export class Transport {
  readonly urls: TargetUrls
  readonly #clock: Clock
  readonly #deadlines: Deadlines
  readonly #connections: Connections

  constructor({ clock, allowPrivateTargets, connectionsPerOrigin, resolve }: TransportOptions) {
    const guard = new AddressGuard({ allowPrivateTargets })
    this.urls = new TargetUrls(guard)
    this.#clock = clock
    this.#deadlines = new Deadlines(clock)
    const connect = guardedConnector({
      clock,
      guard,
      resolve: resolve ?? (allowPrivateTargets ? resolveLikeSystem : dnsResolver()),
    })
    this.#connections = new Connections(connect, {
      clock,
      limitPerOrigin: connectionsPerOrigin ?? CONNECTIONS_PER_ORIGIN,
    })
  }

  /** Begins an exchange: its deadline and its signal hold from here on, while the request is still being prepared. */
  open(terms: ExchangeTerms): Exchange {
    return new Exchange({ clock: this.#clock, deadlines: this.#deadlines }, terms)
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    if (exchange.isOver) return
    try {
      this.#connections.send(exchange, request)
    } catch (error) {
      exchange.fail(error as Error)
    }
  }

  close(): void {
    this.#deadlines.close()
    this.#connections.close()
  }
}
