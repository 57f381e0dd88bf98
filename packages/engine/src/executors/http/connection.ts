import type { Socket } from 'node:net'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { AnswerReader } from './answer-reader.ts'
import type { ConnectionListener, GuardedConnector } from './connector.ts'
import type { Exchange } from './exchange.ts'
import type { Destination } from './open-socket.ts'
import type { OutgoingRequest } from './write-request.ts'
import { writeRequest } from './write-request.ts'

/** Less than the 5 s after which the commonest servers close idle connections themselves. */
const IDLE_MS = 4_000
/** A target that says when it closes is not written to in its last second. */
const MARGIN_MS = 1_000

/** Where connections to one origin go. */
export interface Place {
  /** As requests name it. */
  host: string
  destination: Destination
  connect: GuardedConnector
  clock: Clock
  /** Has the connection write its request, together with others. */
  write(connection: Connection): void
}

export interface ConnectionOwner {
  /** It may carry the next call. */
  free(connection: Connection): void
  /** It is gone. */
  lost(connection: Connection): void
}

/** One connection, from the call that it is opened for until it is closed. It carries one call at a time. */
export class Connection implements ConnectionListener {
  readonly #place: Place
  readonly #owner: ConnectionOwner
  readonly #reader = new AnswerReader()
  #socket: Socket | null = null
  /** While it is being opened. */
  #giveUp: (() => void) | null = null
  #exchange: Exchange | null = null
  /** What is not written yet. */
  #request: OutgoingRequest | null = null
  #error: Error | null = null
  #isClosed = false
  /** Until then it can be used again. */
  goodUntil: Instant = 0

  constructor(place: Place, owner: ConnectionOwner) {
    this.#place = place
    this.#owner = owner
  }

  send(exchange: Exchange, request: OutgoingRequest): void {
    this.#exchange = exchange
    this.#request = request
    if (this.#socket !== null) this.#announce()
    else this.#giveUp = this.#place.connect(this.#place.destination, this, exchange)
  }

  #announce(): void {
    this.#exchange?.whenAnnounced(() => this.#place.write(this))
  }

  write(): void {
    const [exchange, request, socket] = [this.#exchange, this.#request, this.#socket]
    this.#request = null
    if (request === null || socket === null || socket.destroyed) return
    if (exchange === null || exchange.isOver) {
      // It ended before its turn came: others can use the connection.
      this.#rest(IDLE_MS)
      return
    }
    exchange.begin(() => this.#abandon(socket))
    this.#reader.begin(exchange, request)
    writeRequest(socket, this.#place.host, request)
  }

  close(): void {
    this.#isClosed = true
    this.#giveUp?.()
    this.#socket?.destroy()
    const exchange = this.#exchange
    this.#exchange = null
    exchange?.fail(new Error('the node makes no calls any more'))
  }

  opened(socket: Socket): void {
    this.#giveUp = null
    this.#socket = socket
    socket.on('end', () => {
      if (this.#exchange !== null && this.#reader.end()) this.#answered(socket)
    })
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('close', () => this.#broken(this.#error ?? new Error('the target closed the connection')))
    this.#announce()
  }

  failed(error: Error): void {
    this.#giveUp = null
    if (!this.#isClosed) this.#broken(error)
  }

  read(piece: Buffer): void {
    const socket = this.#socket
    if (socket === null) return
    if (this.#exchange === null || this.#request !== null) {
      // Nobody has asked for anything yet.
      socket.destroy()
      return
    }
    let isComplete = false
    try {
      isComplete = this.#reader.read(piece)
    } catch (error) {
      this.#error = error as Error
      socket.destroy()
    }
    if (isComplete) this.#answered(socket)
  }

  #answered(socket: Socket): void {
    const exchange = this.#exchange
    this.#exchange = null
    const { keepsAlive, keepAliveMs } = this.#reader
    const idleMs = Math.min(IDLE_MS, (keepAliveMs ?? Number.POSITIVE_INFINITY) - MARGIN_MS)
    // A target that answers before it has read all of the request may be in the middle of it.
    if (keepsAlive && idleMs > 0 && socket.writableLength === 0 && !socket.destroyed) this.#rest(idleMs)
    else socket.destroy()
    // Last: the end of this call lets others begin, which may use the connection.
    exchange?.complete()
  }

  #rest(idleMs: number): void {
    this.#exchange = null
    this.goodUntil = this.#place.clock.now() + idleMs
    this.#owner.free(this)
  }

  /** The call has ended before its answer: whatever comes now is for nobody. */
  #abandon(socket: Socket): void {
    this.#exchange = null
    socket.destroy()
  }

  #broken(error: Error): void {
    const exchange = this.#exchange
    this.#exchange = null
    this.#isClosed = true
    exchange?.fail(error)
    this.#owner.lost(this)
  }
}
