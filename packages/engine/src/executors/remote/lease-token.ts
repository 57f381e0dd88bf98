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
/** A few megabytes. */
const MAX_KNOWN = 10_000

/** What a token says: the fence, whose run it is, and for how long a heartbeat renews it. */
export interface LeaseClaim {
  readonly fence: Readonly<Fence>
  readonly tenantId: number
  readonly leaseMs: number
}

/**
 * Tokens of remote leases: the run and its attempt, then the lease call (holder, tenant and length), which is what is signed.
 * Whoever has one token of a call may write others for it, and gains nothing: the fence in the database decides. One signature
 * per call instead of one per run is most of what reading a thousand tokens would cost.
 */
export class LeaseTokens {
  readonly #key: Buffer
  /** Signed here lately, as most that come, or found to be right. */
  #known = new Map<string, LeaseClaim>()
  #lastSigned = { call: '', signed: '' }
  #lastRight: string | null = null

  /** The tokens have a key of their own, which says nothing about the one that it is made from. */
  constructor(vaultKey: Uint8Array) {
    this.#key = createHmac('sha256', vaultKey).update(PURPOSE).digest()
  }

  sign({ shard, jobId, nominalAt, attempt, holder, tenantId }: Lease, leaseMs: number): string {
    const token = `${runIdOf(jobId, nominalAt)}.${attempt}.${this.#signed(`${holder}.${tenantId}.${leaseMs}`)}`
    this.#remember(token, { fence: { shard, jobId, nominalAt, attempt, holder }, tenantId, leaseMs })
    return token
  }

  /** Null: nobody signed it. */
  read(token: string): LeaseClaim | null {
    const known = this.#known.get(token)
    if (known !== undefined) return known
    const claim = this.#parse(token)
    if (claim !== null) this.#remember(token, claim)
    return claim
  }

  #parse(token: string): LeaseClaim | null {
    if (typeof token !== 'string' || token.length > MAX_TOKEN) return null
    const runEnd = token.indexOf('.', token.indexOf('.') + 1)
    const callAt = token.indexOf('.', runEnd + 1) + 1
    if (runEnd < 0 || callAt === 0) return null
    const attempt = token.slice(runEnd + 1, callAt - 1)
    const call = token.slice(callAt)
    const run = this.#isRight(call) ? parseRunId(token.slice(0, runEnd)) : null
    if (!run || !ATTEMPT.test(attempt)) return null
    const { jobId, nominalAt } = run
    const [holder = '', tenantId, leaseMs] = call.split('.')
    return {
      fence: { shard: shardOfJob(jobId), jobId, nominalAt, attempt: Number(attempt), holder },
      tenantId: Number(tenantId),
      leaseMs: Number(leaseMs),
    }
  }

  /** Runs of one call come one after the other. */
  #isRight(call: string): boolean {
    if (call === this.#lastRight) return true
    if (!CALL.test(call)) return false
    const at = call.length - MAC_CHARACTERS
    if (!timingSafeEqual(Buffer.from(this.#mac(call.slice(0, at - 1))), Buffer.from(call.slice(at)))) return false
    this.#lastRight = call
    return true
  }

  #remember(token: string, claim: LeaseClaim): void {
    if (this.#known.size >= MAX_KNOWN) this.#known = new Map()
    this.#known.set(token, claim)
  }

  #signed(call: string): string {
    if (this.#lastSigned.call !== call) this.#lastSigned = { call, signed: `${call}.${this.#mac(call)}` }
    return this.#lastSigned.signed
  }

  #mac(call: string): string {
    return hmacOf(this.#key, call, null, 'base64url').slice(0, MAC_CHARACTERS)
  }
}
