import { hash } from 'node:crypto'
import { invariant } from '../errors.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'

/**
 * A job id is a UUIDv7 whose 12 `rand_a` bits carry the shard: any id routes without a look-up and sorts by the time of
 * its creation. A run id is the job id, a dot, and the nominal time in milliseconds, base 36. Ids are lower case; the
 * other spelling is not an id, so that equal ids are equal texts.
 */

const MAX_SHARD = 0xfff
/** Before every id: where a walk through jobs begins. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000'
/** What 48 bits can hold; the year 10889. */
export const MAX_ID_INSTANT = 0xffff_ffff_ffff
/** What a Date can hold, and more than any schedule asks for. */
const MAX_INSTANT = 8_640_000_000_000_000
/** What PostgreSQL can hold: some time before the year 4000 BC. */
const MIN_INSTANT = -200_000_000_000_000

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const SHARD_GROUP = Array.from({ length: MAX_SHARD + 1 }, (_, shard) => `7${shard.toString(16).padStart(3, '0')}`)
const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const JOB_ID_LENGTH = 36

/** Asking the system for 8 bytes costs as much as asking for 4096. */
const BLOCK_BYTES = 4096
interface Block {
  bytes: Buffer
  used: number
}
const blocks = new WeakMap<Random, Block>()

let lastInstant = -1
let lastTimeGroups = ''

/** The first two groups of the id, with both dashes. Ids are made in bursts, so the last one is remembered. */
function timeGroups(instant: Instant): string {
  if (instant !== lastInstant) {
    invariant(Number.isInteger(instant) && instant >= 0 && instant <= MAX_ID_INSTANT, `no id can carry ${instant}`)
    const hex = instant.toString(16).padStart(12, '0')
    lastTimeGroups = `${hex.slice(0, 8)}-${hex.slice(8)}-`
    lastInstant = instant
  }
  return lastTimeGroups
}

export function newJobId(shard: number, now: Instant, random: Random): string {
  const shardGroup = SHARD_GROUP[shard]
  invariant(shardGroup !== undefined, `there is no shard ${shard}`)
  let block = blocks.get(random)
  if (block === undefined) {
    block = { bytes: random.bytes(BLOCK_BYTES), used: 0 }
    blocks.set(random, block)
  } else if (block.used === BLOCK_BYTES) {
    block.bytes = random.bytes(BLOCK_BYTES)
    block.used = 0
  }
  const b = block.bytes
  const i = block.used
  block.used = i + 8
  const variant = HEX[((b[i] as number) & 0x3f) | 0x80]
  return `${timeGroups(now)}${shardGroup}-${variant}${HEX[b[i + 1] as number]}-${HEX[b[i + 2] as number]}${HEX[b[i + 3] as number]}${HEX[b[i + 4] as number]}${HEX[b[i + 5] as number]}${HEX[b[i + 6] as number]}${HEX[b[i + 7] as number]}`
}

/** The smallest id that can be made at an instant: the bound between partitions by day. */
export function jobIdLowerBound(instant: Instant): string {
  return `${timeGroups(instant)}7000-8000-000000000000`
}

export function isJobId(text: string): boolean {
  return typeof text === 'string' && text.length === JOB_ID_LENGTH && JOB_ID.test(text)
}

export function shardOfJob(jobId: string): number {
  return Number.parseInt(jobId.slice(15, 18), 16)
}

export function createdAtOf(jobId: string): Instant {
  return Number.parseInt(jobId.slice(0, 8) + jobId.slice(9, 13), 16)
}

// Runs of the same time come together, so the last text is remembered.
let lastNominal: Instant = Number.NaN
let lastNominalText = ''

export function runIdOf(jobId: string, nominalAt: Instant): string {
  if (nominalAt !== lastNominal) lastNominalText = nominalAt.toString(36)
  lastNominal = nominalAt
  return `${jobId}.${lastNominalText}`
}

/** Reads only what `runIdOf` writes: one run has one spelling. */
export function parseRunId(text: string): { jobId: string; nominalAt: Instant } | null {
  // Whoever has no type checker may ask for anything.
  if (typeof text !== 'string' || text.charAt(JOB_ID_LENGTH) !== '.') return null
  const jobId = text.slice(0, JOB_ID_LENGTH)
  const digits = text.slice(JOB_ID_LENGTH + 1)
  const nominalAt = Number.parseInt(digits, 36)
  if (!isJobId(jobId) || nominalAt.toString(36) !== digits) return null
  if (nominalAt < MIN_INSTANT || nominalAt > MAX_INSTANT) return null
  return { jobId, nominalAt }
}

/**
 * The first 8 bytes of SHA-256 as a signed 64-bit number, in decimal: what `bigint` columns take and give. In SQL:
 *
 *     ('x' || encode(substr(sha256(convert_to($1, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
 */
export function hash64(text: string): string {
  return sha256(text).readBigInt64BE(0).toString()
}

/**
 * The shard that a key of a tenant belongs to. Three bytes, so that SQL stays within `integer`:
 *
 *     select (get_byte(h, 0) * 65536 + get_byte(h, 1) * 256 + get_byte(h, 2)) % $shards
 *       from sha256(convert_to($tenant_id || ':' || $key, 'UTF8')) as h
 */
export function shardOfKey(tenantId: number, key: string, shards: number): number {
  return sha256(`${tenantId}:${key}`).readUIntBE(0, 3) % shards
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
