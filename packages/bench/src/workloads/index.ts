import type { Workload } from '../workload.ts'
import { api } from './api.ts'
import { create } from './create.ts'
import { dag } from './dag.ts'
import { delayed } from './delayed.ts'
import { fairness } from './fairness.ts'
import { fireTimes } from './fire-times.ts'
import { heldSnapshot } from './held-snapshot.ts'
import { http } from './http.ts'
import { idle } from './idle.ts'
import { keyed } from './keyed.ts'
import { payload } from './payload.ts'
import { preEnqueued } from './pre-enqueued.ts'
import { queueLimit } from './queue-limit.ts'
import { rateLimit } from './rate-limit.ts'
import { recurring } from './recurring.ts'
import { remote } from './remote.ts'
import { remoteIdle } from './remote-idle.ts'
import { remoteStart } from './remote-start.ts'
import { startLatency } from './start-latency.ts'
import { steady } from './steady.ts'
import { storm } from './storm.ts'
import { tenMillion } from './ten-million.ts'

/** Everything the bench can do, in the order in which it does it: what others are compared with comes first. */
export const WORKLOADS: readonly Workload[] = [
  preEnqueued,
  steady,
  payload,
  delayed,
  recurring,
  create,
  http,
  api,
  remote,
  remoteStart,
  startLatency,
  fairness,
  storm,
  queueLimit,
  keyed,
  rateLimit,
  dag,
  heldSnapshot,
  fireTimes,
  idle,
  remoteIdle,
  tenMillion,
]
