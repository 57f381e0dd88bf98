import { type Clock, type Logger, SystemClock, silentLogger, systemRandom } from '@belfry/engine'
import { fastify, type RouteOptions } from 'fastify'
import type { App, TypeBoxProvider } from './app.ts'
import { Auth } from './auth.ts'
import { clientErrorHandler } from './client-error.ts'
import { healthRoutes } from './health.ts'
import { parseJsonBody } from './json-body.ts'
import { RouteTable } from './not-found.ts'
import { describeRoutes, openApiRoutes } from './openapi.ts'
import { answerError } from './problem.ts'
import { Limiter } from './rate-limit.ts'
import { allRoutes } from './routes/index.ts'
import type { Service } from './service.ts'
import { compileValidator } from './validation.ts'

export interface AppOptions {
  /** The engine once it has started; the server is there before it, to say that it is waiting. */
  service: () => Service | null
  adminKey: string | null
  logger?: Logger
  clock?: Clock
  /** A request that has not arrived whole by then is cut off. */
  requestTimeoutMs?: number
  /** A node without the role `api` says only how it is. */
  serves?: 'everything' | 'health'
}

const BODY_LIMIT_BYTES = 1_048_576
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
const CHECK_MS = 2_000
const MAX_PARAM_LENGTH = 4_096
const REQUEST_ID = /^[\w.:-]{1,128}$/

/**
 * Everything of the server but its port. A route is declared in `routes/` with a schema and `config.scope`; the key, its
 * scope and the tenant's rate limit are checked before its body is read, and `request.tenant` is the engine bound to the
 * caller's tenant. A route that declares no scope stops the start.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const { service, adminKey, logger = silentLogger, clock = new SystemClock() } = options
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
  const answer = answerError(logger)
  const app = fastify({
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout,
    http: {
      requestTimeout,
      // The longer of the two is what Node waits for the whole: its default of a minute must not be it.
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeout),
      connectionsCheckingInterval: Math.min(CHECK_MS, requestTimeout),
    },
    // What still comes over open connections while the server closes is served, and they are closed after it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    genReqId: requestIds(),
    frameworkErrors: (error, request, reply) => answer(error, request, reply),
    clientErrorHandler,
  }).withTypeProvider<TypeBoxProvider>()
  const limiter = new Limiter(clock)
  const auth = new Auth({ service, adminKey, limiter })
  const table = new RouteTable()

  app.setValidatorCompiler(compileValidator)
  app.setErrorHandler(answer)
  app.setNotFoundHandler(table.answer)
  app.removeAllContentTypeParsers()
  for (const type of ['application/json', /^application\/[\w.-]+\+json/i])
    app.addContentTypeParser(type, { parseAs: 'buffer' }, parseJsonBody)
  app.decorateRequest('caller')
  app.decorateRequest('tenant')
  app.decorateRequest('service')
  app.addHook('onRoute', (route) => {
    table.add(route.method, route.url)
    protect(route, auth)
  })
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store', 'x-request-id': request.id })
    done()
  })
  // `100-continue` is all that can be expected; what else is, need not be met, and is no reason to refuse.
  app.server.on('checkExpectation', app.routing)
  // A connection whose request is answered while the server closes would else be kept open for another one.
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
  })

  await describeRoutes(app)
  healthRoutes(app, service)
  if (options.serves !== 'health') {
    allRoutes(app, { limiter, clock, service })
    openApiRoutes(app)
  }
  await app.ready()
  return app
}

/** Nothing is open by mistake: a route says which scope it needs, or that it needs none. */
function protect(route: RouteOptions, auth: Auth): void {
  const { config, method, url } = route
  if (config?.scope === undefined) throw new Error(`${method} ${url} declares no config.scope`)
  if (config.scope !== null) route.onRequest = [auth.hookFor(config.scope), ...[route.onRequest ?? []].flat()]
}

/** What the client calls its request, if that is a word; else a number under this start's own name. */
function requestIds() {
  const start = systemRandom.bytes(6).toString('hex')
  let count = 0
  return ({ headers }: { headers: Record<string, string | string[] | undefined> }): string => {
    const given = headers['x-request-id']
    return typeof given === 'string' && REQUEST_ID.test(given) ? given : `${start}-${(++count).toString(36)}`
  }
}
