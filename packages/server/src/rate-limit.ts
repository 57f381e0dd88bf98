import { BelfryError, type Clock } from '@belfry/engine'
import type { FastifyReply } from 'fastify'
import type { Service } from './service.ts'

/** Tenants whose buckets are remembered; of more, the one that asked longest ago starts with full buckets again. */
const MAX_TENANTS = 10_000

/** Each bucket holds what its rate gives in this time, and that much may come at once. */
const WINDOW_S = 1

interface Bucket {
  perSecond: number
  tokens: number
  filledAt: number
}

interface Buckets {
  requests: Bucket | null
  creates: Bucket | null
}

type Policy = keyof Buckets

/**
 * Rate limits of tenants: a token bucket per tenant and policy, in the memory of this node. Each node counts for itself, so
 * a fleet lets through what its nodes let through together. A tenant without limits costs one look into a map.
 */
export class Limiter {
  readonly #clock: Clock
  readonly #tenants = new Map<number, Buckets>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes one request; throws `rate_limited`. Answers of tenants with a limit say how much of it is left. */
  async admit(service: Service, { tenantId }: { tenantId: number }, reply: FastifyReply): Promise<void> {
    const { requestsPerSecond, createsPerSecond } = await service.admin.tenants.quotasOf(tenantId)
    if (requestsPerSecond == null && createsPerSecond == null) {
      if (this.#tenants.size > 0) this.#tenants.delete(tenantId)
      return
    }
    const buckets = this.#bucketsOf(tenantId)
    buckets.requests = this.#filled(buckets.requests, requestsPerSecond)
    buckets.creates = this.#filled(buckets.creates, createsPerSecond)
    this.#take(buckets, 'requests', 1, reply)
  }

  /** Takes the jobs of one call. More than the bucket holds is let through once and paid off: else it could never be. */
  takeCreates({ tenantId }: { tenantId: number }, count: number, reply: FastifyReply): void {
    const buckets = this.#tenants.get(tenantId)
    if (buckets) this.#take(buckets, 'creates', count, reply)
  }

  #take(buckets: Buckets, policy: Policy, count: number, reply: FastifyReply): void {
    const bucket = buckets[policy]
    const isAdmitted = bucket === null || bucket.tokens >= 1
    if (bucket && isAdmitted) bucket.tokens -= count
    sayLimits(buckets, reply)
    if (isAdmitted) return
    reply.header('retry-after', String(secondsUntilNext(bucket)))
    throw new BelfryError('rate_limited', `the tenant may make ${bucket.perSecond} ${policy} per second`)
  }

  #bucketsOf(tenantId: number): Buckets {
    const known = this.#tenants.get(tenantId)
    const buckets = known ?? { requests: null, creates: null }
    if (known) this.#tenants.delete(tenantId)
    else if (this.#tenants.size >= MAX_TENANTS) this.#tenants.delete(this.#tenants.keys().next().value as number)
    this.#tenants.set(tenantId, buckets)
    return buckets
  }

  #filled(bucket: Bucket | null, perSecond: number | null | undefined): Bucket | null {
    if (perSecond == null) return null
    const now = this.#clock.now()
    if (bucket === null) return { perSecond, tokens: perSecond * WINDOW_S, filledAt: now }
    const gained = ((now - bucket.filledAt) / 1_000) * perSecond
    bucket.tokens = Math.min(perSecond * WINDOW_S, bucket.tokens + gained)
    bucket.perSecond = perSecond
    bucket.filledAt = now
    return bucket
  }
}

/** Structured fields of the IETF draft: `"requests";r=7;t=1` says that 7 are left and that in 1 s there are more. */
function sayLimits(buckets: Buckets, reply: FastifyReply): void {
  const policies: string[] = []
  const states: string[] = []
  for (const [name, bucket] of Object.entries(buckets) as [Policy, Bucket | null][]) {
    if (bucket === null) continue
    policies.push(`"${name}";q=${bucket.perSecond * WINDOW_S};w=${WINDOW_S}`)
    states.push(`"${name}";r=${Math.max(0, Math.floor(bucket.tokens))};t=${secondsUntilNext(bucket)}`)
  }
  reply.header('ratelimit-policy', policies.join(', '))
  reply.header('ratelimit', states.join(', '))
}

function secondsUntilNext({ tokens, perSecond }: Bucket): number {
  return Math.max(1, Math.ceil((1 - tokens) / perSecond))
}
