import { type BelfryError, ERRORS } from '@belfry/engine'
import type { FastifyReply } from 'fastify'

/** Answers with an RFC 9457 problem; the code is the stable part that programs may rely on. */
export function sendProblem(reply: FastifyReply, { code, message, complaints }: BelfryError): FastifyReply {
  const { status, title } = ERRORS[code]
  if (status === 503) reply.header('retry-after', '1')
  const errors = complaints.length === 0 ? {} : { errors: complaints }
  return reply
    .status(status)
    .type('application/problem+json')
    .send({ type: `urn:belfry:problem:${code}`, title, status, code, detail: message, ...errors })
}
