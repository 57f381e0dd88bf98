import net, { type LookupFunction, type Socket } from 'node:net'
import tls from 'node:tls'

/** Where a connection goes. */
export interface Destination {
  isSecure: boolean
  /** A name, or an address without brackets. */
  hostname: string
  port: number
}

/** Enough for the answer of nearly every call in one piece. */
const BUFFER_BYTES = 65_536
const MAX_SESSIONS = 1_000
const KEEP_ALIVE_MS = 60_000

/**
 * Sockets to targets. What comes in is read into one buffer for all of them: a buffer for each piece, as a stream would
 * make it, costs as much as everything else about the piece.
 */
export class SocketOpener {
  readonly #lookup: LookupFunction
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  /** Of TLS, by where they lead to: the next connection there needs no full handshake. */
  readonly #sessions = new Map<string, Buffer>()

  constructor(lookup: LookupFunction) {
    this.#lookup = lookup
  }

  /** `onRead` hears what comes in; when it returns, the bytes are gone. */
  open(destination: Destination, onRead: (piece: Buffer) => void): Socket {
    const { hostname, port, isSecure } = destination
    const callback = (bytes: number, buffer: Uint8Array): boolean => {
      onRead((buffer as Buffer).subarray(0, bytes))
      return true
    }
    const options = { host: hostname, port, lookup: this.#lookup, onread: { buffer: this.#buffer, callback } }
    const socket = isSecure ? this.#openSecure(options) : net.connect(options)
    return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS)
  }

  #openSecure(options: tls.ConnectionOptions & { host: string; port: number }): Socket {
    const { host, port } = options
    const place = `${host}:${port}`
    const session = this.#sessions.get(place)
    const socket = tls.connect({
      ...options,
      ALPNProtocols: ['http/1.1'],
      // An address is no name that a server could be asked for.
      ...(net.isIP(host) === 0 ? { servername: host } : undefined),
      ...(session === undefined ? undefined : { session }),
    })
    return socket.on('session', (given: Buffer) => this.#keepSession(place, given))
  }

  #keepSession(place: string, session: Buffer): void {
    this.#sessions.delete(place)
    this.#sessions.set(place, session)
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest)
  }
}
