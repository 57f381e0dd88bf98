import { expect, test } from 'vitest'
import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import type { Overlap } from '../../src/job/states.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { at, MINUTE, START, startKit } from './kit.ts'

/**
 * Random sequences of ticks, ends, failures and triggers over jobs of every policy, held against a model that knows nothing
 * of how they are stored: each policy as somebody would explain it.
 */
interface Model {
  policy: Overlap
  running: number[]
  waiting: number[]
  /** How each run that is over has ended. */
  over: Map<number, string>
  skipped: number[]
}

/** Answers whether it was let in. */
function arrive(job: Model, time: number): boolean {
  const isAlive = job.running.length + job.waiting.length > 0
  if (!isAlive || job.policy === 'allow') {
    job.running.push(time)
    return true
  }
  switch (job.policy) {
    case 'skip':
      return false
    case 'buffer_one':
      if (job.waiting.length > 0) return false
      job.waiting.push(time)
      return true
    case 'buffer_latest':
      for (const older of job.waiting) job.over.set(older, 'skipped')
      job.waiting = [time]
      return true
    case 'buffer_all':
      job.waiting.push(time)
      return true
    case 'cancel_running':
      // The handlers of this test stop as soon as they are asked.
      for (const older of [...job.running, ...job.waiting]) job.over.set(older, 'canceled')
      job.running = [time]
      job.waiting = []
      return true
  }
}

function end(job: Model, time: number, how: string): void {
  job.running = job.running.filter((one) => one !== time)
  job.over.set(time, how)
  const next = Math.min(...job.waiting)
  if (job.running.length > 0 || next === Number.POSITIVE_INFINITY) return
  job.waiting = job.waiting.filter((one) => one !== next)
  job.running.push(next)
}

const shown = (runs: { at: string | number; what: string }[]): string[] =>
  runs.map((run) => `${(Number(run.at) - START) / MINUTE} ${run.what}`).sort()

function shownModel({ running, waiting, over, skipped }: Model): string[] {
  const all = (times: number[], what: string) => times.map((time) => ({ at: time, what }))
  const ended = [...over].map(([time, what]) => ({ at: time, what }))
  return shown([...all(running, 'running'), ...all(waiting, 'blocked'), ...ended, ...all(skipped, 'no run')])
}

const POLICIES: Overlap[] = ['allow', 'skip', 'buffer_one', 'buffer_latest', 'buffer_all', 'cancel_running']
const STEPS = 14
const leave = { running: 'leave' } as const

async function setup(seed: number) {
  const t = await startKit()
  const random = seededRandom(seed)
  const atWork = new Map<string, (how: (run: ActiveRun) => unknown) => void>()
  const handler = (run: ActiveRun) =>
    new Promise((resolve, reject) => {
      const finish = (how: (run: ActiveRun) => unknown) => {
        atWork.delete(run.id)
        try {
          resolve(how(run))
        } catch (error) {
          reject(error)
        }
      }
      atWork.set(run.id, finish)
      run.signal.addEventListener('abort', () => finish((aborted) => aborted.cancel('asked to stop')))
    })
  await t.kit.handle('model', handler, { concurrency: 1_000 })
  const jobs = new Map<string, Model & { everyMinutes: number }>()
  for (let i = 0; i < 4 * POLICIES.length; i++) {
    const policy = POLICIES[i % POLICIES.length] as Overlap
    const everyMinutes = 1 + Math.floor(i / POLICIES.length / 2)
    const { jobId } = await t.kit.jobs.create({
      ...{ queue: 'model', payload: i, overlap: policy, timeout: '1d', retry: { maxAttempts: 1 } },
      ...{ every: `PT${everyMinutes}M`, startAt: at(MINUTE) },
    })
    jobs.set(jobId, { policy, everyMinutes, running: [], waiting: [], over: new Map(), skipped: [] })
  }
  /** All jobs at once, from the tables: in flight, over, and skipped. */
  const really = async () => {
    const rows = await t.query<{ job_id: string; at: string; what: string }>(
      `select job_id, extract(epoch from nominal_at) * 1000 as at, (array['ready', 'running', 'waiting', 'blocked'])[state + 1] as what from runs
       union all select job_id, extract(epoch from nominal_at) * 1000, (array['succeeded', 'failed', 'canceled', '', '', '', 'skipped'])[outcome] from attempts where final
       union all select job_id, extract(epoch from from_nominal) * 1000, 'no run' from skips`,
    )
    return new Map([...jobs.keys()].map((id) => [id, shown(rows.filter(({ job_id }) => job_id === id))]))
  }
  return { ...t, random, atWork, jobs, really }
}

test.each([1, 2])('every policy does as it says, whatever comes in whatever order (%i)', async (seed) => {
  const t = await setup(seed)
  const { kit, random, jobs, atWork } = t
  for (let step = 1; step <= STEPS; step++) {
    kit.clock.advance(MINUTE)
    for (const job of jobs.values()) {
      if ((step - 1) % job.everyMinutes > 0) continue
      const time = START + step * MINUTE
      if (!arrive(job, time)) job.skipped.push(time)
    }
    await kit.settle(leave)
    const toTrigger: string[] = []
    for (const [jobId, job] of jobs) {
      const chance = random.float()
      if (chance > 0.8) toTrigger.push(jobId)
      const [oldest] = job.running
      if (chance > 0.35 || oldest === undefined) continue
      const fails = random.float() < 0.3
      atWork.get(`${jobId}.${oldest.toString(36)}`)?.((run) => (fails ? run.fail('no') : undefined))
      end(job, oldest, fails ? 'failed' : 'succeeded')
    }
    await kit.settle(leave)
    for (const jobId of toTrigger) {
      const job = jobs.get(jobId) as Model
      const triggered = await kit.jobs.trigger(jobId).then(
        ({ runId }) => Number.parseInt(runId.split('.')[1] as string, 36),
        (error: { code: string }) => error.code,
      )
      const isRight = typeof triggered === 'number' ? arrive(job, triggered) : !arrive({ ...job }, START)
      expect(isRight, `a trigger under ${job.policy} in step ${step} answers ${triggered}`).toBe(true)
    }
    await kit.settle(leave)
    const really = await t.really()
    for (const [jobId, job] of jobs) expect(really.get(jobId), `${job.policy}, step ${step}`).toEqual(shownModel(job))
  }
})
