import { ERRORS, type ErrorCode } from '@belfry/engine'
import { fastifySwagger } from '@fastify/swagger'
import type { FastifySchema } from 'fastify'
import type { App } from './app.ts'
import { DOCS_POLICY, docsPage } from './docs-page.ts'
import { liftNamed } from './openapi-components.ts'
import type { OpenApiDocument, Operation } from './openapi-document.ts'
import { problem } from './schemas/problem.ts'
import { isOptionalBody } from './validation.ts'

const VERSION = '1.0.0'
const OVERVIEW = `Belfry runs work at the right time: an HTTP call, or work for a queue; now, at an instant, after a delay, on a cron or at an interval.

Send \`Authorization: Bearer <key>\`. Times are RFC 3339 in UTC, durations ISO 8601 (\`PT10M\`) or short (\`10m\`, \`90s\`). Lists are pages: send \`nextCursor\` back as \`cursor\` until it is null. What goes wrong is answered as \`application/problem+json\` with a stable \`code\`; a field that does not exist is refused, with the name that was probably meant. Within /v1 things are only added.`

/** Must come before the routes: it listens to what is declared. */
export async function describeRoutes(app: App): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Belfry', version: VERSION, description: OVERVIEW },
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key.' } } },
      security: [{ key: [] }],
    },
    transform: ({ schema, url, route }) => {
      const scope = route.config?.scope ?? null
      const { body } = schema
      const isOptional = typeof body === 'object' && body !== null && isOptionalBody(body)
      const described: FastifySchema & Record<string, unknown> = {
        operationId: operationIdOf([route.method].flat()[0] as string, url),
        ...schema,
        'x-belfry-scope': scope,
        ...(scope === null ? { security: [] } : {}),
        ...(isOptional ? { 'x-optional-body': true } : {}),
      }
      return { schema: described, url }
    },
  })
}

/** What describes the others, last. The texts are made once, when somebody first asks. */
export function openApiRoutes(app: App): void {
  let document: OpenApiDocument | null = null
  const described = (): OpenApiDocument => {
    document ??= complete(app.swagger() as unknown as OpenApiDocument)
    return document
  }
  let json: string | null = null
  let page: string | null = null
  app.get('/openapi.json', { config: { scope: null }, schema: { hide: true } }, (_request, reply) => {
    json ??= JSON.stringify(described())
    return reply.type('application/json').send(json)
  })
  app.get('/docs', { config: { scope: null }, schema: { hide: true } }, (_request, reply) => {
    page ??= docsPage(described())
    reply.header('content-security-policy', DOCS_POLICY)
    return reply.type('text/html; charset=utf-8').send(page)
  })
}

/** What every operation may answer beside what it declares, and what makes it do so. */
function errorsOf(operation: Operation): ErrorCode[] {
  const keyed: ErrorCode[] = operation['x-belfry-scope'] === null ? [] : ['unauthorized', 'forbidden', 'rate_limited']
  const named: ErrorCode[] = operation.parameters?.some((parameter) => parameter.in === 'path') ? ['not_found'] : []
  const bodied: ErrorCode[] = operation.requestBody
    ? ['invalid_json', 'body_too_large', 'unsupported_media_type', 'request_timeout']
    : []
  const asked: ErrorCode[] = operation.parameters || operation.requestBody ? ['invalid_request'] : []
  return [...keyed, ...named, ...bodied, ...asked, 'database_unavailable']
}

function complete(document: OpenApiDocument): OpenApiDocument {
  const used = new Set<ErrorCode>()
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    if (operation.requestBody && operation['x-optional-body']) operation.requestBody.required = false
    delete operation['x-optional-body']
    for (const code of errorsOf(operation)) {
      used.add(code)
      operation.responses[String(ERRORS[code].status)] ??= { $ref: `#/components/responses/${code}` }
    }
  }
  const responses = Object.fromEntries(
    [...used].map((code) => [
      code,
      { description: ERRORS[code].title, content: { 'application/problem+json': { schema: problem } } },
    ]),
  )
  return liftNamed({ ...document, components: { ...document.components, responses } })
}

/** `GET /v1/jobs/:jobId/runs` is `getJobsByJobIdRuns`. */
function operationIdOf(method: string, url: string): string {
  const words = url
    .replace(/^\/v1/, '')
    .replaceAll('/:', '/by-')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
