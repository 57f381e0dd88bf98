import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseRunId, runIdOf, shardOfJob } from '../../job/ids.ts'
import type { Fence, Lease } from '../../leases/lease.ts'
import { hmacOf } from '../http/signature.ts'

/** Of 132 bits. */
const MAC_CHARACTERS = 22
/** More than any token takes. */
const MAX_TOKEN = 200
const PURPOSE = 'belfry lease token'
const ATTEMPT = /^[1-9]\d{0,8}$/
const CALL = /^-\d{1,19}\.\d{1,10}\.\d{1,7}\.[\w-]{22}$/
const MAX_KNOWN = 10_000

/** What a token says: the fence, whose run it is, and for how long a heartbeat renews it. */
export interface LeaseClaim {
  fence: Fence
  tenantId: number
  leaseMs: number
}

interface SignedCall {
  signed: string
  holder: string
  tenantId: number
  leaseMs: number
}

/**
 * Tokens of remote leases: the run and its attempt, then the lease call (holder, tenant and length), which is what is signed.
 * Whoever has one token of a call may write others for it, and gains nothing: the fence in the database decides. One signature
 * per call instead of one per run is most of what reading a thousand tokens would cost.
 */
export class LeaseTokens {
  readonly #key: Buffer
  /** Signed lately, or found to be right. */
  #known = new Set<string>()
  #lastSigned = { call: '', signed: '' }
  #lastRead: SignedCall = { signed: '', holder: '', tenantId: 0, leaseMs: 0 }

  /** The tokens have a key of their own, which says nothing about the one that it is made from. */
  constructor(vaultKey: Uint8Array) {
    this.#key = createHmac('sha256', vaultKey).update(PURPOSE).digest()
  }

  sign({ jobId, nominalAt, attempt, holder, tenantId }: Lease, leaseMs: number): string {
    return `${runIdOf(jobId, nominalAt)}.${attempt}.${this.#signed(`${holder}.${tenantId}.${leaseMs}`)}`
  }

  /** Null: nobody signed it. */
  read(token: string): LeaseClaim | null {
    if (typeof token !== 'string' || token.length > MAX_TOKEN) return null
    const runEnd = token.indexOf('.', token.indexOf('.') + 1)
    const callAt = token.indexOf('.', runEnd + 1) + 1
    if (runEnd < 0 || callAt === 0) return null
    const attempt = token.slice(runEnd + 1, callAt - 1)
    const call = this.#callOf(token.slice(callAt))
    const run = call && parseRunId(token.slice(0, runEnd))
    if (!run || !ATTEMPT.test(attempt)) return null
    const { jobId, nominalAt } = run
    const { holder, tenantId, leaseMs } = call
    return {
      fence: { shard: shardOfJob(jobId), jobId, nominalAt, attempt: Number(attempt), holder },
      tenantId,
      leaseMs,
    }
  }

  /** What is signed; runs of one call come one after the other. */
  #callOf(signed: string): SignedCall | null {
    if (this.#lastRead.signed === signed) return this.#lastRead
    if (!this.#known.has(signed) && !this.#isRight(signed)) return null
    const [holder = '', tenantId, leaseMs] = signed.split('.')
    this.#lastRead = { signed, holder, tenantId: Number(tenantId), leaseMs: Number(leaseMs) }
    return this.#lastRead
  }

  #signed(call: string): string {
    if (this.#lastSigned.call !== call) {
      this.#lastSigned = { call, signed: `${call}.${this.#mac(call)}` }
      this.#remember(this.#lastSigned.signed)
    }
    return this.#lastSigned.signed
  }

  #isRight(call: string): boolean {
    if (!CALL.test(call)) return false
    const at = call.length - MAC_CHARACTERS
    if (!timingSafeEqual(Buffer.from(this.#mac(call.slice(0, at - 1))), Buffer.from(call.slice(at)))) return false
    this.#remember(call)
    return true
  }

  #remember(call: string): void {
    if (this.#known.size >= MAX_KNOWN) this.#known = new Set()
    this.#known.add(call)
  }

  #mac(call: string): string {
    return hmacOf(this.#key, call, null, 'base64url').slice(0, MAC_CHARACTERS)
  }
}
