import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseRunId, shardOfJob } from '../../job/ids.ts'
import type { Fence } from '../../leases/lease.ts'
import { hmacOf } from './signature.ts'

/** Of 192 bits; the whole digest would only make the address longer. */
const MAC_CHARACTERS = 32
/** More than any token takes. */
const MAX_TOKEN = 128
const PURPOSE = 'belfry callback token'
const ATTEMPT_AND_HOLDER = /^([1-9]\d{0,8})\.(\d{1,19})$/

/** Whoever has the token of an attempt may end that attempt, and nothing else: it is the fence, and cannot be made up. */
export class CallbackTokens {
  readonly #key: Buffer

  /** The tokens have a key of their own, which says nothing about the one that it is made from. */
  constructor(vaultKey: Uint8Array) {
    this.#key = createHmac('sha256', vaultKey).update(PURPOSE).digest()
  }

  sign(runId: string, { attempt, holder }: Pick<Fence, 'attempt' | 'holder'>): string {
    const signed = `${runId}.${attempt}.${holder}`
    return `${signed}.${this.#mac(signed)}`
  }

  /** Null: nobody signed it. */
  read(token: string): Fence | null {
    if (typeof token !== 'string' || token.length > MAX_TOKEN || /[^\w.-]/.test(token)) return null
    const end = token.lastIndexOf('.')
    const mac = Buffer.from(token.slice(end + 1))
    if (end < 0 || mac.length !== MAC_CHARACTERS) return null
    const signed = token.slice(0, end)
    if (!timingSafeEqual(Buffer.from(this.#mac(signed)), mac)) return null
    const [jobId = '', nominal = '', ...rest] = signed.split('.')
    const run = parseRunId(`${jobId}.${nominal}`)
    const [, attempt, holder] = ATTEMPT_AND_HOLDER.exec(rest.join('.')) ?? []
    if (!run || attempt === undefined || holder === undefined) return null
    return { ...run, shard: shardOfJob(run.jobId), attempt: Number(attempt), holder }
  }

  #mac(signed: string): string {
    return hmacOf(this.#key, signed, null, 'base64url').slice(0, MAC_CHARACTERS)
  }
}
