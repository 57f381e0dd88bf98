import { type buildConnector, Client } from 'undici'
import type { GuardedConnector } from './connector.ts'
import type { Carrier, Exchange } from './exchange.ts'

export interface OutgoingRequest {
  origin: string
  path: string
  method: string
  /** Names and values in turn. */
  headers: string[]
  body: string | Buffer | null
}

/** Less than the 5 s after which the commonest servers close idle connections themselves. */
const IDLE_MS = 4_000

/**
 * Connections to targets, kept alive between calls. The one that was used last is used next: those that are not needed
 * stay idle and close, and the others stay warm. undici's own pool asks connection after connection for a
 * free one, twice per call.
 */
export class Connections {
  readonly #connect: GuardedConnector
  readonly #limit: number
  readonly #origins = new Map<string, OriginConnections>()
  #isClosed = false

  constructor(connect: GuardedConnector, limitPerOrigin: number) {
    this.#connect = connect
    this.#limit = limitPerOrigin
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    if (this.#isClosed) throw new Error('the node makes no calls any more')
    let origin = this.#origins.get(request.origin)
    if (origin === undefined) {
      origin = new OriginConnections(request.origin, this.#connect, this.#limit, () =>
        this.#origins.delete(request.origin),
      )
      this.#origins.set(request.origin, origin)
    }
    origin.send(exchange, request)
  }

  /** Cuts what is under way. Nobody waits until the last socket is gone: how these calls end is of no interest any more. */
  close(): void {
    this.#isClosed = true
    for (const origin of this.#origins.values()) origin.close()
  }
}

class OriginConnections {
  readonly #name: string
  readonly #connect: GuardedConnector
  readonly #limit: number
  readonly #onEmpty: () => void
  readonly #all = new Set<Connection>()
  /** The one that was used last is the last. */
  readonly #idle: Connection[] = []
  /** Calls that found all connections in use; those before them are bounded by their slots. */
  readonly #waiting: { exchange: Exchange; request: OutgoingRequest }[] = []

  constructor(name: string, connect: GuardedConnector, limit: number, onEmpty: () => void) {
    this.#name = name
    this.#connect = connect
    this.#limit = limit
    this.#onEmpty = onEmpty
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    const connection = this.#idle.pop() ?? (this.#all.size < this.#limit ? this.#open() : null)
    if (connection === null) this.#waiting.push({ exchange, request })
    else connection.send(exchange, request)
  }

  free(connection: Connection): void {
    for (;;) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      if (next.exchange.isOver) continue
      connection.send(next.exchange, next.request)
      return
    }
    if (connection.isConnected) this.#idle.push(connection)
    else this.drop(connection)
  }

  /** It has no socket and nobody uses it: a new one is as good. */
  drop(connection: Connection): void {
    const place = this.#idle.indexOf(connection)
    if (place >= 0) this.#idle.splice(place, 1)
    if (!this.#all.delete(connection)) return
    connection.close()
    if (this.#all.size === 0) this.#onEmpty()
  }

  close(): void {
    for (const { exchange } of this.#waiting.splice(0)) exchange.fail(new Error('the node makes no calls any more'))
    for (const connection of this.#all) connection.close()
  }

  #open(): Connection {
    const connection = new Connection(this, this.#name, this.#connect)
    this.#all.add(connection)
    return connection
  }
}

/** One connection, which connects again by itself; it carries one call at a time. */
class Connection implements Carrier {
  readonly #owner: OriginConnections
  readonly #client: Client
  #exchange: Exchange | null = null
  isConnected = false

  constructor(owner: OriginConnections, origin: string, connect: GuardedConnector) {
    this.#owner = owner
    this.#client = new Client(origin, {
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      // The deadline of the attempt is the only one.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (options: buildConnector.Options, callback: buildConnector.Callback) =>
        connect(options, callback, this.#exchange),
    })
    this.#client.on('connect', () => {
      this.isConnected = true
    })
    this.#client.on('disconnect', () => {
      this.isConnected = false
      if (this.#exchange === null) owner.drop(this)
    })
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    this.#exchange = exchange
    exchange.carrier = this
    this.#client.dispatch(request, exchange)
  }

  /** The answer is complete. */
  answered(): void {
    this.#exchange = null
    this.#owner.free(this)
  }

  /** undici is still busy with what went wrong: the next call comes after that. */
  failed(): void {
    setImmediate(() => this.answered())
  }

  close(): void {
    void this.#client.destroy()
  }
}
