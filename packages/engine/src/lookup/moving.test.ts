import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { finishSucceeded } from '../attempts/finish.sql.ts'
import { Partitioner } from '../history/partitioner.ts'
import { putDelayed } from '../intake/put-jobs.sql.ts'
import { newJobId, runIdOf } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import { promoteOneOffs } from '../promotion/promote-one-offs.sql.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { getJob } from './get-job.sql.ts'
import { getRun } from './get-run.sql.ts'
import { listJobs } from './list-jobs.sql.ts'
import { listRuns } from './list-runs.sql.ts'

const NOW = Date.UTC(2026, 10, 15, 13, 30)
const LATER = NOW + 600_000
const SHARD = 7
const SHARDS = 8

async function setup() {
  const database = await createDatabase({ days: { around: NOW, ahead: 14 } })
  onTestFinished(() => database.drop())
  const open = () => {
    const made = new Database({
      connection: inject('postgres'),
      schema: database.schema,
      logger: silentLogger,
    })
    onTestFinished(() => made.close())
    return made
  }
  const [db, mover] = [open(), open()]
  await new Partitioner({ db, clock: new ManualClock(NOW), logger: silentLogger }).ensure()
  const create = async () => {
    const jobId = newJobId(SHARD, NOW, systemRandom)
    const numbers = { tenantId: 1, queueId: 1, timeoutMs: 60_000, priority: 5, delivery: 0, state: RUN_STATE.ready }
    const rare = { limitKey: null, fairnessKey: null, hasDependents: false }
    const job = { shard: SHARD, jobId, ...numbers, ...rare, name: null, definitionJson: '{"queue":"emails"}' }
    await putDelayed([{ ...job, kind: 'delayed', dueAt: LATER, turn: null }], NOW)(mover)
    return jobId
  }
  /** Out of its timer and into the hands of holder 9, in one statement. */
  const promote = (jobId: string) =>
    promoteOneOffs(mover, [{ shard: SHARD, jobId, version: 1, turn: 1, leased: true, queueId: 1 }], {
      holder: '9',
      now: LATER,
      leaseMs: 30_000,
    })
  const finish = (jobId: string) => {
    const fence = { shard: SHARD, jobId, nominalAt: LATER, attempt: 1, holder: '9' }
    return finishSucceeded(mover, [{ kind: 'succeeded', fence, startedAt: LATER, finishedAt: LATER + 1 }])
  }
  /** Moves one job after the other from its timer into history while `look` looks at whichever moves. */
  const whileMoving = async (look: (jobId: string, isOver: () => boolean) => Promise<void>) => {
    let [current, ended, isDone] = [await create(), false, false]
    // One job is looked at in every place on purpose; the looks during the moves see whatever they meet.
    await look(current, () => false)
    await promote(current)
    await look(current, () => false)
    await finish(current)
    await look(current, () => true)
    current = await create()
    const move = async () => {
      for (let i = 0; i < 150; i++) {
        await promote(current)
        await finish(current)
        ended = true
        const next = await create()
        ended = false
        current = next
      }
      isDone = true
    }
    const keepLooking = async () => {
      while (!isDone) {
        const jobId = current
        await look(jobId, () => jobId !== current || ended)
      }
    }
    await Promise.all([move(), keepLooking(), keepLooking()])
  }
  return { db, whileMoving }
}

test('a job that moves from its timer to a run to history is found at every moment', async () => {
  const t = await setup()
  const seen = new Set<string>()
  await t.whileMoving(async (jobId, isOver) => {
    const wasOver = isOver()
    const job = await getJob(t.db, 1, jobId)
    const run = await getRun(t.db, 1, runIdOf(jobId, LATER))
    expect(wasOver ? ['succeeded'] : ['active', 'succeeded']).toContain(job?.status)
    expect(wasOver ? ['succeeded'] : ['waiting', 'running', 'succeeded']).toContain(run?.status)
    seen.add(`${job?.status} ${run?.status}`)
  })
  expect(seen).toContain('active waiting')
  expect(seen).toContain('active running')
  expect(seen).toContain('succeeded succeeded')
})

test('a list never lacks what moves, nor shows it twice', async () => {
  const t = await setup()
  await t.whileMoving(async (jobId) => {
    const jobs = await listJobs(t.db, { tenantId: 1, limit: 1_000 })
    expect(jobs.items.filter((job) => job.jobId === jobId)).toHaveLength(1)
    const runs = await listRuns(t.db, { tenantId: 1, shards: SHARDS, limit: 1_000 })
    const ofJob = await listRuns(t.db, { tenantId: 1, shards: SHARDS, jobId })
    expect(new Set(runs.items.map(({ id }) => id)).size).toBe(runs.items.length)
    expect(ofJob.items.length).toBeLessThanOrEqual(1)
    const [run] = ofJob.items
    if (run === undefined) return
    expect(
      (await listRuns(t.db, { tenantId: 1, shards: SHARDS, limit: 1_000 })).items.filter(({ id }) => id === run.id),
    ).toHaveLength(1)
  })
})
