import { hash } from 'node:crypto'
import type { Random } from '../runtime/random.ts'

/** Every leasing statement has a holder id of its own, so that what it leased can be asked for by it alone. */
export function newHolder(random: Random): string {
  const bytes = random.bytes(8)
  bytes[0] = (bytes[0] as number) & 0x7f
  return bytes.readBigInt64BE(0).toString()
}

const digest = Buffer.alloc(32)

/**
 * The holder of a remote lease call: the same for a call that is repeated, on whichever node. It is negative, so that the
 * leases of workers are told from those of nodes, and are found by an index of their own.
 */
export function holderOfCall(tenantId: number, workerId: string, requestId: string): string {
  // As a string: a buffer of its own costs more than the hash.
  digest.write(hash('sha256', `${tenantId}\n${workerId}\n${requestId}`, 'binary'), 'binary')
  return negative(digest)
}

/** Of a call that cannot be repeated. */
export const holderOfOneCall = (random: Random): string => negative(random.bytes(8))

function negative(bytes: Buffer): string {
  bytes[0] = (bytes[0] as number) | 0x80
  return bytes.readBigInt64BE(0).toString()
}
