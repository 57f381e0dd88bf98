import { checkLength, readBody } from './read-body.ts'
import { type ReceiverHandler, type ReceiverOptions, receive } from './receive.ts'
import type { RawBody } from './received-call.ts'
import { ReceiverError } from './receiver-error.ts'

/**
 * Web `Request` to `Response`, as a handler of Next's App Router is (`export const POST = nextReceiver(…)`), and as
 * `Deno.serve` and `Bun.serve` take one.
 */
export function nextReceiver(
  options: ReceiverOptions,
  handler: ReceiverHandler,
): (request: Request) => Promise<Response> {
  return (request) => respond(request, options, handler)
}

/** Hono's request wraps the Web's; what a middleware has read of it is kept there. */
interface HonoContext {
  req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> }
}

export function honoReceiver(
  options: ReceiverOptions,
  handler: ReceiverHandler,
): (context: HonoContext) => Promise<Response> {
  return ({ req }) => respond(req.raw, options, handler, () => req.arrayBuffer())
}

async function respond(
  request: Request,
  options: ReceiverOptions,
  handler: ReceiverHandler,
  readAgain: () => Promise<RawBody> = alreadyRead,
): Promise<Response> {
  const body = async (maxBytes: number): Promise<RawBody> => {
    checkLength(Number(request.headers.get('content-length') ?? 0), maxBytes)
    if (request.bodyUsed) return readAgain()
    return request.body === null ? '' : readBody(request.body, maxBytes)
  }
  const answer = await receive({ headers: request.headers, readBody: body }, options, handler)
  const { status, headers } = answer
  // 204 must have no body at all, not even an empty one.
  return new Response(answer.body === '' ? null : answer.body, { status, headers })
}

function alreadyRead(): Promise<never> {
  throw new ReceiverError('body_not_raw', 'the body was read already; the receiver must be the first to read it')
}
