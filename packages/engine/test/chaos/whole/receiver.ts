import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { pause } from '../../../src/runtime/pause.ts'

/** Something that a performer of an attempt said, or that the target of an HTTP call saw. */
export interface Sighting {
  what: 'began' | 'ended'
  runId: string
  attempt: number
  /** The process that performs the attempt. HTTP calls do not tell which node or library makes them: `http`. */
  by: string
  at: number
}

interface Work {
  ms?: number
  failsOnce?: boolean
}

/**
 * Counts attempts outside of Belfry: the target of all HTTP calls, and the ledger of handlers and workers, which tell it
 * that an attempt begins before they do anything else. A line is written when its request has arrived, and never merged
 * with another: what must not happen twice can be seen twice.
 */
export class Receiver {
  readonly sightings: Sighting[] = []
  readonly #server = createServer((request, response) => {
    this.#take(request, response).catch(() => response.destroy())
  })
  #url = ''

  static async open(): Promise<Receiver> {
    const receiver = new Receiver()
    // A connection that is closed while idle would make a caller repeat a request, or fail one that arrived.
    receiver.#server.keepAliveTimeout = 3_600_000
    receiver.#server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 })
    await once(receiver.#server, 'listening')
    receiver.#url = `http://127.0.0.1:${(receiver.#server.address() as AddressInfo).port}`
    return receiver
  }

  get targetUrl(): string {
    return `${this.#url}/target`
  }

  get ledgerUrl(): string {
    return `${this.#url}/ledger`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    if (request.url === '/ledger') {
      this.sightings.push({ ...(JSON.parse(body) as Omit<Sighting, 'at'>), at: Date.now() })
      response.end()
      return
    }
    const header = (name: string) => String(request.headers[name] ?? '')
    const sighting = { runId: header('belfry-run-id'), attempt: Number(header('belfry-attempt')), by: 'http' }
    this.sightings.push({ what: 'began', ...sighting, at: Date.now() })
    const { ms = 0, failsOnce = false } = (body === '' ? {} : JSON.parse(body)) as Work
    if (ms > 0) await pause(ms)
    if (response.destroyed) return
    this.sightings.push({ what: 'ended', ...sighting, at: Date.now() })
    response.statusCode = failsOnce && sighting.attempt === 1 ? 500 : 200
    response.end()
  }
}
