import { BelfryError, ERRORS, type ErrorCode, type Logger } from '@belfry/engine'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'

/** How Fastify names what goes wrong before a handler is reached, and how the catalogue does. */
const OF_FASTIFY: Record<string, [code: ErrorCode, message: string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'the body is larger than this route takes'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'the body must be JSON; send the header content-type: application/json',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_request', 'the body is not as long as content-length says'],
  FST_ERR_BAD_URL: ['invalid_request', 'the address is not a valid URL'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'a part of the address is longer than any name'],
  FST_ERR_REOPENED_CLOSE_SERVER: ['stopped', 'this node is stopping'],
}

/** The text of an RFC 9457 problem; the code is the stable part that programs may rely on. */
export function problemText({ code, message, complaints }: BelfryError): string {
  const { status, title } = ERRORS[code]
  const errors = complaints.length === 0 ? {} : { errors: complaints }
  return JSON.stringify({ type: `urn:belfry:problem:${code}`, title, status, code, detail: message, ...errors })
}

export function sendProblem(reply: FastifyReply, error: BelfryError): FastifyReply {
  const { status } = ERRORS[error.code]
  if (status === 503) reply.header('retry-after', '1')
  if (status === 429 && !reply.hasHeader('retry-after'))
    reply.header('retry-after', String(error.retryAfterSeconds ?? 1))
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="belfry"')
  // As text, so that no response schema of the route is asked how to write it.
  return reply.status(status).type('application/problem+json').send(problemText(error))
}

/** Answers whatever a route or Fastify threw. What is not of the catalogue is a bug: it is logged, and nothing of it is told. */
export function answerError(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = knownError(error)
    if (known === null) {
      logger.error('a request failed', {
        requestId: request.id,
        method: request.method,
        route: routeOf(request),
        error,
      })
      return sendProblem(reply, new BelfryError('internal_error', `tell the operator the request id ${request.id}`))
    }
    if (known.status >= 500) {
      const { code, message, cause } = known
      logger.warn('a request was refused', { requestId: request.id, route: routeOf(request), code, message, cause })
    }
    // Fastify would close the connection. But the body of `invalid_json` has been read to the end; and what still comes of
    // a body that is too large is thrown away for as long as a request may take, because closing with bytes unread
    // resets the connection, and the client would never learn why.
    if (known.code === 'invalid_json' || known.code === 'body_too_large') reply.removeHeader('connection')
    return sendProblem(reply, known)
  }
}

function knownError(error: unknown): BelfryError | null {
  if (error instanceof BelfryError) return error
  const { code, statusCode } = error as Partial<FastifyError>
  const known = code === undefined ? undefined : OF_FASTIFY[code]
  if (known) return new BelfryError(known[0], known[1])
  const isRefused = code?.startsWith('FST_') && statusCode !== undefined && statusCode >= 400 && statusCode < 500
  // A body that broke off has the connection's code, and Fastify's word that the client is to blame.
  const isBrokenOff = statusCode === 400 && (code === 'ECONNRESET' || code === 'ECONNABORTED')
  return isRefused || isBrokenOff ? new BelfryError('invalid_request', 'the request cannot be read') : null
}

const routeOf = (request: FastifyRequest): string => request.routeOptions.url ?? 'none'
