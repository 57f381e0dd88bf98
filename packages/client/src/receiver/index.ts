/**
 * For programs that Belfry calls: who called, and was it done already. Needs nothing but Web APIs, so that it runs
 * wherever the receiver does.
 */
export { Answer, fail, later, retryIn } from './answer.ts'
export { expressReceiver } from './express-receiver.ts'
export { type FastifyScope, fastifyReceiver } from './fastify-receiver.ts'
export type { HeadersLike } from './header-of.ts'
export { createOnceTable, forgetOnce, type OnceClient, type OnceOutcome, once } from './once.ts'
export { type RawRequest, type ReceiverHandler, type ReceiverOptions, receive } from './receive.ts'
export type { RawBody, ReceivedCall } from './received-call.ts'
export { ReceiverError, type ReceiverErrorCode } from './receiver-error.ts'
export { type Report, type ReportOptions, report } from './report.ts'
export { type VerifyInput, verify } from './verify.ts'
export { honoReceiver, nextReceiver } from './web-receiver.ts'
