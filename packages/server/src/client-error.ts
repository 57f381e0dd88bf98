import type { Socket } from 'node:net'
import { BelfryError } from '@belfry/engine'
import { problemText } from './problem.ts'

/** What Node cannot read as a request has neither a route nor a reply: the answer is written to the connection. */
export function clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const problem = problemOf(error.code)
  const text = problemText(problem)
  socket.end(
    [
      `HTTP/1.1 ${problem.status} ${problem.code}`,
      'connection: close',
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(text)}`,
      '',
      text,
    ].join('\r\n'),
  )
}

function problemOf(code: string | undefined): BelfryError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new BelfryError('request_timeout', 'the request did not arrive in time')
  if (code === 'HPE_HEADER_OVERFLOW') return new BelfryError('body_too_large', 'the headers are too large')
  return new BelfryError('invalid_request', 'this is not HTTP')
}
