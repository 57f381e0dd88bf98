import { Agent } from 'undici'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { AddressGuard } from './address-guard.ts'
import { guardedConnector, type Resolve } from './connector.ts'
import { Deadlines } from './deadlines.ts'
import { type CallSignal, Exchange } from './exchange.ts'
import { dnsResolver, resolveLikeSystem } from './resolve-name.ts'
import { TargetUrls } from './target-url.ts'

export interface TransportOptions {
  clock: Clock
  /** Development only: calls may go to this machine and its network. */
  allowPrivateTargets: boolean
  /** Connections per origin; default 256. */
  connectionsPerOrigin?: number
  /** How names become addresses; default by asking the name servers, or in development the system's way. */
  resolve?: Resolve
}

export interface OutgoingRequest {
  origin: string
  path: string
  method: string
  /** Names and values in turn. */
  headers: string[]
  body: string | Buffer | null
}

const CONNECTIONS_PER_ORIGIN = 256
/** Less than the 5 s after which the commonest servers close idle connections themselves. */
const IDLE_MS = 4_000

/** The node's connections to targets: pools per origin that keep them alive, one guard, one timer for all deadlines. */
export class Transport {
  readonly urls: TargetUrls
  readonly #clock: Clock
  readonly #deadlines: Deadlines
  readonly #agent: Agent
  #dispatching: Exchange | null = null

  constructor({ clock, allowPrivateTargets, connectionsPerOrigin, resolve }: TransportOptions) {
    const guard = new AddressGuard({ allowPrivateTargets })
    this.urls = new TargetUrls(guard)
    this.#clock = clock
    this.#deadlines = new Deadlines(clock)
    this.#agent = new Agent({
      connections: connectionsPerOrigin ?? CONNECTIONS_PER_ORIGIN,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      // The deadline of the attempt is the only one.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: guardedConnector({
        clock,
        guard,
        resolve: resolve ?? (allowPrivateTargets ? resolveLikeSystem : dnsResolver()),
        caller: () => this.#dispatching,
      }),
    })
  }

  /** Begins an exchange: its deadline and its signal hold from here on, while the request is still being prepared. */
  open(until: { deadline: Instant; signal: CallSignal | null }): Exchange {
    return new Exchange({ clock: this.#clock, deadlines: this.#deadlines }, until)
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    if (exchange.isOver) return
    this.#dispatching = exchange
    try {
      this.#agent.dispatch(request, exchange)
    } catch (error) {
      exchange.fail(error as Error)
    } finally {
      this.#dispatching = null
    }
  }

  async close(): Promise<void> {
    this.#deadlines.close()
    await this.#agent.destroy()
  }
}
