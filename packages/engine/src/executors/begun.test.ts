import { expect, test } from 'vitest'
import { OVERTIME_MS } from '../job/overtime.ts'
import type { Lease } from '../leases/lease.ts'
import { silentLogger } from '../runtime/logger.ts'
import { Begun } from './begun.ts'

const leaseOf = (jobId: string, attempt: number, deadline = 1_000): Lease => ({
  ...{ shard: 0, jobId, nominalAt: 0, attempt, holder: '7', tenantId: 1, queueId: 1, jobVersion: 1, failures: 0 },
  ...{ failureClass: null, timeoutMs: deadline - OVERTIME_MS },
  ...{ leasedAt: 0, leaseUntil: 500, deadline, atMostOnce: false, oneOff: true, definition: null },
})

test('an attempt begins once in a process, also if it comes twice in one delivery', () => {
  const begun = new Begun(silentLogger)
  const [a, again, b] = [leaseOf('a', 1), leaseOf('a', 1), leaseOf('b', 1)]
  expect(begun.onlyNew([a, again, b], 0)).toEqual([a, b])
  expect(begun.onlyNew([leaseOf('a', 1)], 10)).toEqual([])
  expect(begun.onlyNew([leaseOf('a', 2)], 10)).toHaveLength(1)
})

test('a fence is forgotten when its attempt has ended, and when its deadline has passed', () => {
  const begun = new Begun(silentLogger)
  begun.onlyNew([leaseOf('a', 1)], 0)
  begun.ended(leaseOf('a', 1))
  expect(begun.onlyNew([leaseOf('a', 1)], 0)).toHaveLength(1)
  const many = Array.from({ length: 10_000 }, (_, i) => leaseOf(`many ${i}`, 1, 100))
  expect(begun.onlyNew(many, 0)).toHaveLength(10_000)
  expect(begun.onlyNew([leaseOf('later', 1, 5_000)], 200)).toHaveLength(1)
  expect(begun.onlyNew(many, 200)).toHaveLength(10_000)
})
