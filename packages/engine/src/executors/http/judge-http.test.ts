import { expect, test } from 'vitest'
import { OUTCOME } from '../../job/states.ts'
import type { Lease } from '../../leases/lease.ts'
import { seededRandom } from '../../runtime/random.ts'
import { type AbortReason, ActiveRun, type RunServices } from '../handlers/active-run.ts'
import type { HttpFailure } from './http-call.ts'
import { judgeHttp } from './judge-http.ts'

const NOW = Date.UTC(2026, 0, 1)

/** How an attempt ends whose call was ended by its signal. */
function judgeCut(reason: AbortReason, { atMostOnce = false, written = true } = {}) {
  const lease = { attempt: 1, failures: 0, nominalAt: NOW, deadline: NOW + 5_000, definition: '{}', atMostOnce }
  const run = new ActiveRun(lease as unknown as Lease, {} as RunServices, NOW)
  run.abort(reason)
  const cut: HttpFailure = {
    kind: 'failed',
    failureClass: 'canceled',
    error: 'the run was canceled',
    retryable: false,
    statusCode: null,
    response: null,
    written,
  }
  return judgeHttp(run, { returned: cut }, NOW + 5_000, seededRandom(1))
}

test('a call whose time is up is tried again, whoever noticed it first', () => {
  expect(judgeCut('timeout')).toMatchObject({ kind: 'goes_on', counted: true, failureClass: 'timeout' })
})

test('a call that is cut because its node stops is given back, uncounted', () => {
  expect(judgeCut('stopping')).toMatchObject({ kind: 'goes_on', counted: false, outcome: OUTCOME.released })
})

test('a call that may be made at most once is not repeated when its time is up or its node stops', () => {
  expect(judgeCut('timeout', { atMostOnce: true })).toMatchObject({ outcome: OUTCOME.lost, failureClass: 'timeout' })
  expect(judgeCut('stopping', { atMostOnce: true })).toMatchObject({ outcome: OUTCOME.lost })
})

test('a call that was canceled ends as canceled', () => {
  expect(judgeCut('canceled')).toMatchObject({ outcome: OUTCOME.canceled, failureClass: 'canceled' })
})
