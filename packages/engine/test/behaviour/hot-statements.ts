import { bringForward } from '../../src/attempts/bring-forward.sql.ts'
import { claimRuns } from '../../src/attempts/claim-runs.sql.ts'
import { Expirer } from '../../src/attempts/expirer.sql.ts'
import { finishAnswered, finishEnded, finishGoesOn, finishSucceeded } from '../../src/attempts/finish.sql.ts'
import { countKeys } from '../../src/attempts/key-slots.sql.ts'
import { leasePicked, pick } from '../../src/attempts/limited-picks.sql.ts'
import { countLeased } from '../../src/attempts/queue-slots.sql.ts'
import { BEFORE_KEYS, sweepLimited } from '../../src/concurrency/sweep-limited.sql.ts'
import { awaitParents } from '../../src/dependencies/await-parents.sql.ts'
import { holdChains, stillComing } from '../../src/dependencies/chain.sql.ts'
import { endChildren } from '../../src/dependencies/children.sql.ts'
import { markEdges, readOpenEdges } from '../../src/dependencies/edges.sql.ts'
import { forgetTold } from '../../src/dependencies/forget-told.sql.ts'
import { holdChildren } from '../../src/dependencies/hold-children.sql.ts'
import { lockEndsOfOneOffs, takeBackEnds } from '../../src/dependencies/outbox.sql.ts'
import { countCalls } from '../../src/executors/http/admit-calls.sql.ts'
import { readLiving } from '../../src/intake/unique-keys.sql.ts'
import { newJobId, shardOfJob } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { readCheckpoints, saveCheckpoints } from '../../src/leases/checkpoints.sql.ts'
import { renewLeases } from '../../src/leases/heartbeat.sql.ts'
import { callsWithLeases } from '../../src/leases/recover.sql.ts'
import { promoteOneOffs } from '../../src/promotion/promote-one-offs.sql.ts'
import { promoteRecurring } from '../../src/promotion/promote-recurring.sql.ts'
import { cancelUnleased, supersedeBlocked } from '../../src/ready/end-unrun.sql.ts'
import { sweepBlocked } from '../../src/ready/sweep-blocked.sql.ts'
import { lockJobs, wakeNext } from '../../src/ready/wake-blocked.sql.ts'
import { anyLimited, wakeLimited } from '../../src/ready/wake-limited.sql.ts'
import { wakeWaiting } from '../../src/ready/wake-waiting.sql.ts'
import { ManualClock } from '../../src/runtime/clock.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { sendPulse } from '../../src/shards/pulse.sql.ts'
import { Wakeups } from '../../src/shards/wakeups.sql.ts'
import type { Queryable } from '../../src/store/database.ts'
import { queueGauge } from '../../src/tenants/queue-gauge.sql.ts'
import { tenantGauge } from '../../src/tenants/tenant-gauge.sql.ts'
import { positionBefore, readDueTimers } from '../../src/timers/read-due.sql.ts'
import { START } from './kit.ts'

const BATCH = 500
export const SHARDS = 4

const random = seededRandom(1)
const jobIds = Array.from({ length: BATCH }, (_, i) => newJobId(i % SHARDS, START, random)).sort()
const fences = jobIds.map((jobId) => ({ shard: shardOfJob(jobId), jobId, nominalAt: START, attempt: 1, holder: '9' }))
const succeededAt = <F>(fence: F) => ({ kind: 'succeeded' as const, fence, startedAt: START, finishedAt: START })
const ends = fences.map(succeededAt)
const failure = { failureClass: null, statusCode: null, error: 'down', outcome: OUTCOME.failed }
const pieceFrom = (first: string) => ({ shards: [0, 1], after: [first, first], perShard: 500 })
const lease = { holder: '9', now: START, leaseMs: 30_000 }
const promotions = fences.map(({ shard, jobId }, turn) => ({
  ...{ shard, jobId, version: 1, turn },
  ...{ leased: turn % 2 === 0, queueId: 1 },
}))
const LIMITS = { isEmpty: false, of: () => ({ maxDepth: 100, maxAgeMs: 1_000 }) }
const level = { priority: 5, watermark: 0 }
const urgent = { priority: 9, watermark: 0 }
const claim = { queueId: 1, now: START, limit: BATCH, places: Array(BATCH).fill(lease), freePlaces: 10 }
const picking = { queueId: 1, limit: BATCH, isQueueHeld: false, exceptKeys: ['1'] }
const outbox = jobIds.map((jobId) => ({ jobId, nominalAt: START, number: 1, outcome: OUTCOME.succeeded }))
const pairs = jobIds.map((parent, i) => ({ parent, child: jobIds[BATCH - 1 - i] as string }))
const edges = pairs.map((pair, i) => ({
  ...{ ...pair, place: `(0,${i + 1})`, held: null, kind: 0, childNominal: START, wanted: 0, onFailure: 0 },
}))

const keys = jobIds.map((_, i) => ({
  ...{ shard: i % SHARDS, key: String(i), maxRunning: 1, rate: null },
  ...{ rateAt: 0, onLimit: 0, isPaused: false, usedAt: START },
}))
const pickedRuns = fences.map(({ shard, jobId }, i) => ({
  ...{ place: `(0,${i + 1})`, shard, key: '1', nominalAt: START, jobId },
  ...{ hasBegun: false, cost: 1, turn: 1, priority: 5, delivery: 2 },
}))

const BY_KEY = ['runs_leased_of_key', 'runs_limited', 'runs_of_key', 'runs_pkey']

export interface Hot {
  send(db: Queryable): Promise<unknown>
  /** What it may read hot tables by. */
  by: string[]
}

/** Every statement that is sent for each run, or each second, as it would be sent. */
export const HOT: Record<string, Hot> = {
  claim: {
    send: (db) => claimRuns(db, { ...claim, levels: [level] }),
    by: ['runs_ready', 'runs_pkey', 'specs'],
  },
  'claim several levels': {
    send: (db) => claimRuns(db, { ...claim, levels: [level, urgent] }),
    by: ['runs_ready', 'runs_pkey', 'specs'],
  },
  'count what is leased of a queue': {
    send: (db) => countLeased(db, 1, { maxRunning: BATCH, hasOlder: false }),
    by: ['runs_leased_of_queue'],
  },
  pick: {
    send: (db) => pick(db, 'plain', { ...picking, levels: [level, urgent] }),
    by: ['runs_ready'],
  },
  'pick keyed': {
    send: (db) => pick(db, 'keyed', { ...picking, levels: [level] }),
    by: ['runs_ready_keyed'],
  },
  'pick keyed of several levels': {
    send: (db) => pick(db, 'keyed', { ...picking, levels: [level, urgent] }),
    by: ['runs_ready_keyed'],
  },
  'count keys': {
    send: (db) => countKeys(db, keys),
    by: BY_KEY,
  },
  'lease what was picked': {
    send: (db) =>
      leasePicked(
        db,
        { lease: pickedRuns, limit: [] },
        { queueId: 1, now: START, places: claim.places, isQueueHeld: true },
      ),
    by: ['specs', 'run_payloads_pkey'],
  },
  'wake limited': {
    send: (db) =>
      wakeLimited(
        db,
        keys.map((key) => ({ ...key, wanted: 1 })),
        { now: START, floors: { queueIds: [1], starts: [1] } },
      ),
    by: BY_KEY,
  },
  'any limited': {
    send: (db) => anyLimited(db),
    by: ['runs_limited'],
  },
  'sweep limited': {
    send: (db) => sweepLimited(db, pieceFrom(BEFORE_KEYS), START, () => {}),
    by: BY_KEY,
  },
  'find repeated calls': {
    send: (db) => callsWithLeases(db, ['-9', '-10'], START),
    by: ['runs_of_worker'],
  },
  checkpoint: {
    send: (db) =>
      saveCheckpoints(
        db,
        fences.map((fence) => ({ fence, value: '1', progress: null })),
      ),
    by: ['runs_pkey', 'checkpoints_pkey'],
  },
  'read checkpoints': { send: (db) => readCheckpoints(db, fences), by: ['checkpoints_pkey'] },
  succeed: {
    send: (db) => finishSucceeded(db, ends),
    by: ['runs_pkey'],
  },
  answered: {
    send: (db) =>
      finishAnswered(
        db,
        ends.map((end) => ({ ...end, kind: 'answered', statusCode: 200, response: '{}' })),
      ),
    by: ['runs_pkey'],
  },
  end: {
    send: (db) =>
      finishEnded(
        db,
        ends.map((end) => ({ ...end, ...failure, kind: 'ended', result: null })),
      ),
    by: ['runs_pkey', 'checkpoints_pkey'],
  },
  'try again': {
    send: (db) =>
      finishGoesOn(
        db,
        ends.map((end) => ({ ...end, ...failure, kind: 'goes_on', counted: true, nextDueAt: START, turn: null })),
      ),
    by: ['runs_pkey'],
  },
  'promote recurring': {
    send: (db) =>
      promoteRecurring(
        db,
        promotions.map((item) => ({ ...item, wanted: true, nextNominalAt: START + 60_000, nextDueAt: START + 60_000 })),
        lease,
      ),
    by: ['timers_pkey', 'runs_pkey', 'jobs_pkey'],
  },
  'promote one-offs': {
    send: (db) => promoteOneOffs(db, promotions, lease),
    by: ['timers_pkey', 'specs'],
  },
  renew: {
    send: (db) => renewLeases(db, fences, 30_000),
    by: ['runs_pkey'],
  },
  wake: {
    send: (db) => wakeWaiting(db, [0, 1, 2, 3], { now: START, floors: { queueIds: [1], starts: [1] } }),
    by: ['runs_waiting', 'runs_pkey'],
  },
  'lock jobs to wake': {
    send: (db) => lockJobs(db, fences),
    by: ['timers_pkey', 'jobs_pkey', 'specs'],
  },
  'wake blocked': {
    send: (db) => wakeNext(db, fences, { now: START, floors: { queueIds: [1], starts: [1] } }),
    by: ['runs_blocked', 'runs_pkey'],
  },
  'look at jobs of unique keys': {
    send: (db) => readLiving(db, jobIds),
    by: ['timers_pkey', 'runs_pkey'],
  },
  'measure queues': {
    send: (db) => queueGauge({ db, clock: new ManualClock(START), limits: LIMITS }).refresh([1, 2, 3]),
    by: ['runs_ready', 'runs_ready_keyed', 'runs_limited_of_queue'],
  },
  'measure tenants': {
    send: (db) => tenantGauge({ db, clock: new ManualClock(START), limits: LIMITS }).refresh([2, 3]),
    by: ['runs_by_tenant'],
  },
  'measure the tenant default': {
    send: (db) => tenantGauge({ db, clock: new ManualClock(START), limits: LIMITS }).refresh([1]),
    // It has no index of its own, and is measured among a million runs of all at most.
    by: ['Seq Scan of runs'],
  },
  'bring forward': {
    send: (db) => bringForward(db, ['1', '2'], { dueAfter: START, from: START, spacingMs: 1, limit: 10 }),
    by: ['runs_at_gate'],
  },
  'count calls of an origin': {
    send: (db) => countCalls(db, '1', 10),
    by: ['runs_at_gate'],
  },
  expire: {
    send: (db) => {
      const expirer = new Expirer({ db, clock: new ManualClock(START), wakeups: new Wakeups() })
      expirer.own([0, 1])
      expirer.saw({ hasStartDeadlines: true })
      return expirer.runOnce()
    },
    by: ['runs_pkey', 'jobs_with_start_deadline'],
  },
  'sweep blocked': {
    send: (db) => sweepBlocked(db, pieceFrom('00000000-0000-0000-0000-000000000000'), () => {}),
    by: ['runs_blocked', 'runs_pkey'],
  },
  'cancel waiting': {
    send: (db) => cancelUnleased(db, { shard: 1, jobId: jobIds[1] as string, nominalAt: null }, { now: START }),
    by: ['runs_pkey', 'checkpoints_pkey'],
  },
  supersede: {
    send: (db) => {
      const successor = { nominalAt: START, error: 'superseded' }
      return supersedeBlocked(db, { shard: 1, jobId: jobIds[1] as string }, { now: START, successor })
    },
    by: ['runs_blocked', 'runs_pkey', 'checkpoints_pkey'],
  },
  pulse: {
    send: (db) =>
      sendPulse(db, {
        ...{ nodeShard: 0, nodeId: jobIds[0] as string, roles: 15, address: null, now: START, startedAt: START },
        ...{ shards: [0, 1], timersAfter: [START, START], queueIds: [1], servedQueueIds: [1], charges: null },
      }),
    by: [
      'timers_by_due',
      'runs_waiting',
      'runs_leased',
      'runs_ready',
      'runs_ready_keyed',
      'runs_blocked',
      'runs_limited',
      'outbox_pkey',
      'jobs_with_start_deadline',
    ],
  },
  'lock ends': { send: (db) => lockEndsOfOneOffs(db, 1_000, null), by: ['outbox_pkey'] },
  'take back ends': { send: (db) => takeBackEnds(db, outbox), by: ['outbox_pkey'] },
  'read edges': { send: (db) => readOpenEdges(db, jobIds, 10_000), by: ['edges_pkey'] },
  'mark edges': { send: (db) => markEdges(db, pairs, 1), by: ['edges_pkey'] },
  'hold children': { send: (db) => holdChildren(db, jobIds, 10_000), by: ['edges_pkey', 'runs_pkey'] },
  'forget what was told': {
    send: (db) => forgetTold(db, { edges, ends: [], going: new Map(jobIds.map((jobId) => [jobId, 1])) }),
    by: ['edges_by_child'],
  },
  'look at timers of parents': {
    send: (db) =>
      stillComing(
        db,
        jobIds.map((jobId) => ({ jobId, nominalAt: 0 })),
      ),
    by: ['edges_by_child', 'timers_pkey'],
  },
  'hold timers of chains': { send: (db) => holdChains(db, jobIds), by: ['timers_pkey'] },
  'end children': {
    send: (db) =>
      endChildren(
        db,
        outbox.map((child) => ({ ...child, outcome: OUTCOME.canceled, reason: 'parent_failed', error: 'no' })),
        START,
      ),
    by: ['runs_pkey'],
  },
  'mark awaited parents': {
    send: (db) => awaitParents(db, { oneOffs: jobIds, recurring: [] }),
    by: ['timers_pkey'],
  },
  'read due timers': {
    send: (db) =>
      readDueTimers(
        db,
        [0, 1, 2, 3].map((shard) => ({ shard, position: positionBefore(START) })),
        START + 2_500,
        2_000,
      ),
    by: ['timers_by_due'],
  },
}
