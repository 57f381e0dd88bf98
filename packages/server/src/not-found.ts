import { BelfryError } from '@belfry/engine'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './problem.ts'

/** Which methods each route has, so that a wrong one can be told from a wrong address. */
export class RouteTable {
  readonly #methods = new Map<string, Set<string>>()

  add(methods: string | readonly string[], pattern: string): void {
    const known = this.#methods.get(pattern) ?? new Set()
    for (const method of [methods].flat()) known.add(method)
    this.#methods.set(pattern, known)
  }

  /** Empty: nothing is there at all. */
  methodsAt(path: string): string[] {
    const segments = path.split('/')
    const methods = [...this.#methods].filter(([pattern]) => matches(pattern.split('/'), segments))
    return [...new Set(methods.flatMap(([, set]) => [...set]))].sort()
  }

  /** Answers what no route took. */
  readonly answer = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = request.url.split('?', 1)[0] as string
    const methods = this.methodsAt(path)
    if (methods.length === 0)
      return sendProblem(reply, new BelfryError('not_found', `there is no ${request.method} ${path.slice(0, 200)}`))
    reply.header('allow', [...methods, 'OPTIONS'].join(', '))
    if (request.method === 'OPTIONS') return reply.status(204).send()
    return sendProblem(reply, new BelfryError('method_not_allowed', `here there is ${methods.join(', ')}`))
  }
}

const matches = (pattern: string[], segments: string[]): boolean =>
  pattern.length === segments.length &&
  pattern.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
