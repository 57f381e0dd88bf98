import { createHmac, timingSafeEqual } from 'node:crypto'
import { isJobId, shardOfJob } from '../../job/ids.ts'
import type { Fence } from '../../leases/lease.ts'

/** Version, job id, nominal time, attempt and holder; then the first half of their HMAC-SHA256. */
const VERSION = 1
const SIGNED_BYTES = 1 + 16 + 8 + 4 + 8
const MAC_BYTES = 16
const TOKEN_LENGTH = Math.ceil(((SIGNED_BYTES + MAC_BYTES) * 8) / 6)
const PURPOSE = 'belfry callback token'

/** Whoever has the token of an attempt may end that attempt, and nothing else. It is opaque, and cannot be made up. */
export class CallbackTokens {
  readonly #key: Buffer

  /** The tokens have a key of their own, which says nothing about the one that it is made from. */
  constructor(vaultKey: Uint8Array) {
    this.#key = createHmac('sha256', vaultKey).update(PURPOSE).digest()
  }

  sign({ jobId, nominalAt, attempt, holder }: Fence): string {
    const bytes = Buffer.allocUnsafe(SIGNED_BYTES + MAC_BYTES)
    bytes[0] = VERSION
    bytes.write(jobId.replaceAll('-', ''), 1, 'hex')
    bytes.writeBigInt64BE(BigInt(nominalAt), 17)
    bytes.writeInt32BE(attempt, 25)
    bytes.writeBigInt64BE(BigInt(holder), 29)
    this.#mac(bytes.subarray(0, SIGNED_BYTES)).copy(bytes, SIGNED_BYTES, 0, MAC_BYTES)
    return bytes.toString('base64url')
  }

  /** Null: nobody signed it. */
  read(token: string): Fence | null {
    if (typeof token !== 'string' || token.length !== TOKEN_LENGTH) return null
    const bytes = Buffer.from(token, 'base64url')
    if (bytes.length !== SIGNED_BYTES + MAC_BYTES || bytes[0] !== VERSION) return null
    const mac = this.#mac(bytes.subarray(0, SIGNED_BYTES)).subarray(0, MAC_BYTES)
    if (!timingSafeEqual(mac, bytes.subarray(SIGNED_BYTES))) return null
    const hex = bytes.toString('hex', 1, 17)
    const jobId = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    if (!isJobId(jobId)) return null
    return {
      shard: shardOfJob(jobId),
      jobId,
      nominalAt: Number(bytes.readBigInt64BE(17)),
      attempt: bytes.readInt32BE(25),
      holder: bytes.readBigInt64BE(29).toString(),
    }
  }

  #mac(signed: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(signed).digest()
  }
}
