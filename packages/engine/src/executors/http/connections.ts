import type { Clock } from '../../runtime/clock.ts'
import { WaitingLine } from '../../runtime/waiting-line.ts'
import { Connection, type ConnectionOwner, type Place } from './connection.ts'
import type { GuardedConnector } from './connector.ts'
import type { Exchange } from './exchange.ts'
import type { OutgoingRequest } from './write-request.ts'

/** How often it is looked for connections that have been idle for too long. */
const TIDY_MS = 1_000

/**
 * Connections to targets, kept alive between calls. The one that was used last is used next: those that are not needed
 * stay idle and close, and the others stay warm.
 */
export class Connections {
  readonly #connect: GuardedConnector
  readonly #limit: number
  readonly #clock: Clock
  readonly #origins = new Map<string, OriginConnections>()
  /** Connections that have a request to write. */
  #ready: Connection[] = []
  #tidying: { cancel(): void } | null = null
  #isClosed = false

  constructor(connect: GuardedConnector, { clock, limitPerOrigin }: { clock: Clock; limitPerOrigin: number }) {
    this.#connect = connect
    this.#clock = clock
    this.#limit = limitPerOrigin
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    if (this.#isClosed) throw new Error('the node makes no calls any more')
    let origin = this.#origins.get(request.origin)
    if (origin === undefined) {
      const place = { ...placeOf(request.origin), connect: this.#connect, clock: this.#clock, write: this.#write }
      origin = new OriginConnections(place, this.#limit, () => this.#origins.delete(request.origin))
      this.#origins.set(request.origin, origin)
    }
    origin.send(exchange, request)
    this.#tidying ??= this.#clock.timer(TIDY_MS, () => this.#tidy())
  }

  /** Cuts what is under way. Nobody waits until the last socket is gone: how these calls end is of no interest any more. */
  close(): void {
    this.#isClosed = true
    this.#tidying?.cancel()
    for (const origin of [...this.#origins.values()]) origin.close()
  }

  /**
   * Requests that become ready in one turn of the event loop are written together at its end: each write to a target that
   * sleeps wakes it up, which costs more than the rest of the call, and the first of many wakes it for all.
   */
  readonly #write = (connection: Connection): void => {
    if (this.#ready.push(connection) > 1) return
    setImmediate(() => {
      const ready = this.#ready
      this.#ready = []
      for (const one of ready) one.write()
    })
  }

  #tidy(): void {
    this.#tidying = null
    for (const origin of [...this.#origins.values()]) origin.tidy()
    if (this.#origins.size > 0) this.#tidying = this.#clock.timer(TIDY_MS, () => this.#tidy())
  }
}

class OriginConnections implements ConnectionOwner {
  readonly #place: Place
  readonly #limit: number
  readonly #onEmpty: () => void
  readonly #all = new Set<Connection>()
  /** The one that was used last is the last. */
  #idle: Connection[] = []
  /** Calls that found all connections in use; those before them are bounded by their slots. */
  readonly #waiting = new WaitingLine<{ exchange: Exchange; request: OutgoingRequest }>()

  constructor(place: Place, limit: number, onEmpty: () => void) {
    this.#place = place
    this.#limit = limit
    this.#onEmpty = onEmpty
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    const connection = this.#idle.pop() ?? (this.#all.size < this.#limit ? this.#open() : null)
    if (connection === null) this.#waiting.push({ exchange, request })
    else connection.send(exchange, request)
  }

  free(connection: Connection): void {
    const next = this.#nextWaiting()
    if (next === undefined) this.#idle.push(connection)
    else connection.send(next.exchange, next.request)
  }

  lost(connection: Connection): void {
    this.#all.delete(connection)
    const place = this.#idle.indexOf(connection)
    if (place >= 0) this.#idle.splice(place, 1)
    const next = this.#nextWaiting()
    if (next !== undefined) this.#open().send(next.exchange, next.request)
    else if (this.#all.size === 0) this.#onEmpty()
  }

  /** Closes what has been idle for so long that the target may close it at any moment. */
  tidy(): void {
    const now = this.#place.clock.now()
    const old = this.#idle.filter((connection) => connection.goodUntil <= now)
    if (old.length === 0) return
    this.#idle = this.#idle.filter((connection) => connection.goodUntil > now)
    for (const connection of old) connection.close()
  }

  close(): void {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift())
      next.exchange.fail(new Error('the node makes no calls any more'))
    for (const connection of this.#all) connection.close()
  }

  #open(): Connection {
    const connection = new Connection(this.#place, this)
    this.#all.add(connection)
    return connection
  }

  #nextWaiting(): { exchange: Exchange; request: OutgoingRequest } | undefined {
    for (;;) {
      const next = this.#waiting.shift()
      if (next === undefined || !next.exchange.isOver) return next
    }
  }
}

function placeOf(origin: string): Pick<Place, 'host' | 'destination'> {
  const { host, hostname, port, protocol } = new URL(origin)
  const isSecure = protocol === 'https:'
  // An address of version 6 has brackets in a URL and nowhere else.
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return { host, destination: { isSecure, hostname: bare, port: Number(port || (isSecure ? 443 : 80)) } }
}
