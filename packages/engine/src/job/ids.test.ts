import fc from 'fast-check'
import { expect, test } from 'vitest'
import { seededRandom, systemRandom } from '../runtime/random.ts'
import {
  createdAtOf,
  hash64,
  isJobId,
  jobIdLowerBound,
  newJobId,
  parseRunId,
  runIdOf,
  shardOfJob,
  shardOfKey,
} from './ids.ts'

const shards = fc.integer({ min: 0, max: 4095 })
const instants = fc.integer({ min: 0, max: 0xffff_ffff_ffff })
const nominals = fc.integer({ min: -200_000_000_000_000, max: 8_640_000_000_000_000 })

test('an id gives back its shard and the time of its creation', () => {
  fc.assert(
    fc.property(shards, instants, (shard, now) => {
      const id = newJobId(shard, now, systemRandom)
      expect(isJobId(id)).toBe(true)
      expect(shardOfJob(id)).toBe(shard)
      expect(createdAtOf(id)).toBe(now)
    }),
  )
})

test('ids sort by creation, and the lower bound of an instant comes before all of its ids', () => {
  fc.assert(
    fc.property(shards, shards, instants, instants, (one, other, a, b) => {
      const id = newJobId(one, a, systemRandom)
      expect(jobIdLowerBound(a) <= id).toBe(true)
      if (a < b) {
        expect(id < newJobId(other, b, systemRandom)).toBe(true)
        expect(id < jobIdLowerBound(b)).toBe(true)
      }
    }),
  )
})

test('two hundred thousand ids of one millisecond and shard are all different', () => {
  const ids = new Set<string>()
  for (let i = 0; i < 200_000; i++) ids.add(newJobId(7, 1_800_000_000_000, systemRandom))
  expect(ids.size).toBe(200_000)
})

test('the same seed gives the same ids', () => {
  const make = (seed: number) => {
    const random = seededRandom(seed)
    return Array.from({ length: 1_100 }, () => newJobId(3, 1_800_000_000_000, random))
  }
  expect(make(1)).toEqual(make(1))
  expect(make(1)).not.toEqual(make(2))
})

test('a shard or an instant that no id can carry is a broken invariant', () => {
  expect(() => newJobId(4096, 0, systemRandom)).toThrow('no shard 4096')
  expect(() => newJobId(-1, 0, systemRandom)).toThrow('no shard -1')
  expect(() => newJobId(0, -1, systemRandom)).toThrow('no id can carry -1')
  expect(() => newJobId(0, 1.5, systemRandom)).toThrow('no id can carry 1.5')
  expect(() => newJobId(0, 2 ** 48, systemRandom)).toThrow('no id can carry')
})

test('only lower-case UUIDs of version 7 are job ids', () => {
  const id = '019bc119-0100-703f-b78e-49ffeefe9595'
  expect(isJobId(id)).toBe(true)
  for (const other of [
    '',
    id.toUpperCase(),
    `${id} `,
    `${id}\n`,
    id.slice(1),
    '019bc119-0100-403f-b78e-49ffeefe9595',
    '019bc119-0100-703f-c78e-49ffeefe9595',
    '019bc119x0100-703f-b78e-49ffeefe9595',
  ]) {
    expect(isJobId(other), other).toBe(false)
  }
})

test('a run id gives back its job and nominal time, before 1970 too', () => {
  fc.assert(
    fc.property(shards, nominals, (shard, nominalAt) => {
      const jobId = newJobId(shard, 1_800_000_000_000, systemRandom)
      expect(parseRunId(runIdOf(jobId, nominalAt))).toEqual({ jobId, nominalAt })
    }),
  )
})

test('a run id has one spelling', () => {
  const jobId = newJobId(5, 1_800_000_000_000, systemRandom)
  expect(runIdOf(jobId, 0)).toBe(`${jobId}.0`)
  expect(runIdOf(jobId, -0)).toBe(`${jobId}.0`)
  for (const tail of [
    '',
    '.',
    '.-',
    '.-0',
    '.00',
    '.0a',
    '.A',
    '.+1',
    '. 1',
    '.1 ',
    '.1.0',
    '.1_',
    '.zzzzzzzzzzzz',
    '_1',
  ]) {
    expect(parseRunId(jobId + tail), tail).toBeNull()
  }
  expect(parseRunId(`${jobId.toUpperCase()}.1`)).toBeNull()
  expect(parseRunId(`x${jobId}.1`)).toBeNull()
})

test('any text that can be read as a run id is exactly what is written for it', () => {
  fc.assert(
    fc.property(fc.string(), (tail) => {
      const run = parseRunId(`019bc119-0100-703f-b78e-49ffeefe9595.${tail}`)
      if (run !== null) expect(runIdOf(run.jobId, run.nominalAt)).toBe(`019bc119-0100-703f-b78e-49ffeefe9595.${tail}`)
    }),
  )
})

test('hashes are the first bytes of SHA-256, as numbers that fit a bigint', () => {
  // sha256('abc') = ba7816bf 8f01cfea …, sha256('') = e3b0c442 98fc1c14 …
  expect(hash64('abc')).toBe(BigInt.asIntN(64, 0xba7816bf8f01cfean).toString())
  expect(hash64('')).toBe(BigInt.asIntN(64, 0xe3b0c44298fc1c14n).toString())
})

test('keys spread evenly over the shards', () => {
  const counts = new Array<number>(64).fill(0)
  for (let i = 0; i < 64_000; i++) {
    const shard = shardOfKey(1, `order-${i}`, 64)
    counts[shard] = (counts[shard] ?? 0) + 1
  }
  expect(Math.min(...counts)).toBeGreaterThan(850)
  expect(Math.max(...counts)).toBeLessThan(1_150)
})
