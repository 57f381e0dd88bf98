import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Answer } from './answer.ts'
import { checkLength, readBody } from './read-body.ts'
import { type ReceiverHandler, type ReceiverOptions, receive } from './receive.ts'
import { type RawBody, rawBytes } from './received-call.ts'

type Request = IncomingMessage & { body?: unknown }

/** For Express, and for whatever else has Node's requests: `node:http`, Connect. */
export function expressReceiver(
  options: ReceiverOptions,
  handler: ReceiverHandler,
): (request: Request, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const raw = { headers: request.headers, readBody: (maxBytes: number) => bodyOf(request, maxBytes) }
    send(response, await receive(raw, options, handler))
  }
}

/** What `express.raw` left, or the stream itself when no parser took it. */
async function bodyOf(request: Request, maxBytes: number): Promise<RawBody> {
  if (!request.readableEnded && !request.readableDidRead) return readBody(request, maxBytes)
  if (request.body === undefined) return ''
  const bytes = rawBytes(request.body as RawBody)
  checkLength(bytes.length, maxBytes)
  return bytes
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.statusCode = status
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  response.end(body)
}
