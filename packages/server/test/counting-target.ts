import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Call {
  runId: string
  jobId: string
  attempt: number
  idempotencyKey: string
}

/** An HTTP target that writes down every call it gets before it answers it. */
export class CountingTarget {
  readonly calls: Call[] = []
  #url = ''

  get url(): string {
    return this.#url
  }

  static async open(): Promise<CountingTarget> {
    const target = new CountingTarget()
    const server = createServer((request, response) => {
      const header = (name: string) => String(request.headers[name] ?? '')
      request.resume().on('end', () => {
        target.calls.push({
          runId: header('belfry-run-id'),
          jobId: header('belfry-job-id'),
          attempt: Number(header('belfry-attempt')),
          idempotencyKey: header('idempotency-key'),
        })
        response.end('ok')
      })
    })
    // Three nodes open hundreds of connections at once; what does not fit into the queue would wait for seconds.
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 })
    await once(server, 'listening')
    target.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return target
  }
}
