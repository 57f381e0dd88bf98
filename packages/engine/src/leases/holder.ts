import type { Random } from '../runtime/random.ts'

/** Every leasing statement has a holder id of its own, so that what it leased can be asked for by it alone. */
export function newHolder(random: Random): string {
  const bytes = random.bytes(8)
  bytes[0] = (bytes[0] as number) & 0x7f
  return bytes.readBigInt64BE(0).toString()
}
