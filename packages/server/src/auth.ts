import { timingSafeEqual } from 'node:crypto'
import { BelfryError, OPERATOR, type Tenant } from '@belfry/engine'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { Limiter } from './rate-limit.ts'
import type { Scope, Service } from './service.ts'

/** Who asks, for whom, and how the change log names them. */
export interface Caller {
  tenantId: number
  tenant: string
  actor: string
  scopes: readonly Scope[]
  /** Asks with the installation's own key, which may see and change every tenant. */
  isInstallation: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
    /** The engine, bound to the caller's tenant. */
    tenant: Tenant
    /** The engine as a whole: for routes of scope `admin`, which check for themselves what they may touch. */
    service: Service
  }
  interface FastifyContextConfig {
    /** What a key must be allowed to do, or what of it one is enough; null: no key is needed. */
    scope: Scope | readonly Scope[] | null
  }
}

export interface AuthOptions {
  service: () => Service | null
  /** Valid beside the keys that the database knows; null: there is none. */
  adminKey: string | null
  limiter: Limiter
}

const ADMIN: readonly Scope[] = ['admin']
const IMPLIED: Record<Scope, readonly Scope[]> = {
  read: ['read'],
  write: ['write', 'read'],
  worker: ['worker'],
  admin: ['admin', 'write', 'worker', 'read'],
}
/** Always there, under this number. */
const DEFAULT_TENANT = { id: 1, name: 'default' }

export class Auth {
  readonly #options: AuthOptions
  readonly #adminKey: Buffer | null

  constructor(options: AuthOptions) {
    this.#options = options
    this.#adminKey = options.adminKey === null ? null : Buffer.from(options.adminKey)
  }

  /** The hook of a route that needs a key with one of these scopes. It runs before the body is read. */
  hookFor(scope: Scope | readonly Scope[]) {
    const wanted = [scope].flat()
    return (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void => {
      const service = this.#options.service()
      if (service === null) {
        done(new BelfryError('database_unavailable', 'this node is starting and waits for its database'))
        return
      }
      this.#admit(service, request, reply, wanted).then(() => done(), done)
    }
  }

  async #admit(service: Service, request: FastifyRequest, reply: FastifyReply, wanted: Scope[]): Promise<void> {
    const caller = await this.#callerOf(service, request)
    if (!wanted.some((scope) => allows(caller.scopes, scope)))
      throw new BelfryError('forbidden', `this needs a key with scope ${wanted.join(' or ')}`)
    await this.#options.limiter.admit(service, caller, reply)
    request.caller = caller
    request.service = service
    request.tenant = service.tenant(caller)
  }

  async #callerOf(service: Service, request: FastifyRequest): Promise<Caller> {
    const key = bearerOf(request.headers.authorization)
    const named = request.headers['belfry-tenant']
    if (this.#isAdminKey(key)) return this.#adminOf(service, typeof named === 'string' ? named : DEFAULT_TENANT.name)
    const found = await service.admin.apiKeys.authenticate(key)
    if (found === null) throw new BelfryError('unauthorized', 'the API key is unknown, expired or revoked')
    const { tenantId, tenant, scopes, prefix } = found
    if (named !== undefined && named !== tenant)
      throw new BelfryError('forbidden', 'this key is for one tenant; only the admin key acts for others')
    return { tenantId, tenant, scopes, actor: prefix, isInstallation: false }
  }

  async #adminOf(service: Service, name: string): Promise<Caller> {
    const tenant = name === DEFAULT_TENANT.name ? DEFAULT_TENANT : await service.admin.tenants.byName(name)
    if (tenant === null) throw new BelfryError('not_found', 'there is no tenant of the name that Belfry-Tenant says')
    return { tenantId: tenant.id, tenant: tenant.name, scopes: ADMIN, actor: OPERATOR, isInstallation: true }
  }

  /** How long it takes tells the length of the key at most, which is no secret, and nothing of its text. */
  #isAdminKey(key: string): boolean {
    const given = Buffer.from(key)
    return this.#adminKey !== null && given.length === this.#adminKey.length && timingSafeEqual(given, this.#adminKey)
  }
}

function bearerOf(header: string | undefined): string {
  const key = /^bearer +(\S{1,512})$/i.exec(header ?? '')?.[1]
  if (key !== undefined) return key
  const message = header === undefined ? 'is missing' : 'is not of the form Bearer <key>'
  throw new BelfryError('unauthorized', `the header Authorization ${message}`)
}

const allows = (scopes: readonly Scope[], wanted: Scope): boolean =>
  scopes.some((scope) => IMPLIED[scope]?.includes(wanted))
