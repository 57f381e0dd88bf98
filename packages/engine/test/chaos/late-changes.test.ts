import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/belfry.ts'
import { BelfryError } from '../../src/errors.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { createDatabase, today } from '../database.ts'
import { startReceiver } from '../http-target.ts'

/** `npm run chaos` makes ten thousand and more. */
const ONE_OFFS = 150
const RECURRING = 150
const CHANGES = 3_000
const EVERY_MS = 2_000
const CALLERS = 16

test('3,000 changes of 300 jobs within two seconds of their time double no call and lose none', async () => {
  const database = await createDatabase({ days: today() })
  onTestFinished(() => database.drop())
  const target = await startReceiver()
  const options = { database: inject('postgres'), schema: database.schema, logger: silentLogger }
  const nodes = [await startNode(options), await startNode(options)]
  const node = (i: number) => nodes[i % nodes.length] as Belfry
  const http = { url: target.url }
  const startAt = new Date(Date.now() + 2_000)
  const oneOffs = await node(0).jobs.createMany(Array(ONE_OFFS).fill({ http, delay: '2s' }))
  const recurring = await node(1).jobs.createMany(
    Array.from({ length: RECURRING }, (_, i) => ({ http, every: 'PT2S', startAt: new Date(+startAt + i * 4) })),
  )

  let [changed, asked] = [0, 0]
  const due = new Set<string>()
  const change = async (i: number) => {
    const jobs = node(i).jobs
    const { jobId } = (i % 2 === 0 ? oneOffs[(i / 2) % ONE_OFFS] : recurring[((i - 1) / 2) % RECURRING]) as {
      jobId: string
    }
    if (i % 2 === 1)
      return i % 10 === 1 ? pauseAndResume(jobs, jobId) : jobs.update(jobId, { labels: { change: `${i}` } })
    if (due.has(jobId)) return jobs.update(recurring[i % RECURRING]?.jobId ?? '', { labels: { change: `${i}` } })
    try {
      return await jobs.update(
        jobId,
        i % 4 === 0 ? { runAt: new Date(Date.now() + 1_990) } : { labels: { change: `${i}` } },
      )
    } catch (error) {
      if (!(error instanceof BelfryError) || error.code !== 'already_due') throw error
      due.add(jobId)
      return null
    }
  }
  const caller = async () => {
    while (changed < CHANGES) if ((await change(asked++)) !== null) changed++
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))

  for (const { jobId } of recurring) await node(0).jobs.cancel(jobId, { running: 'finish' })
  await expect.poll(() => database.query('select from runs union all select from timers limit 1')).toEqual([])
  const calls = target.received.map(({ headers }) => `${headers['belfry-run-id']} ${headers['belfry-attempt']}`)
  expect(new Set(calls).size).toBe(calls.length)
  const called = new Set(target.received.map(({ headers }) => headers['belfry-run-id']))
  const ended = await database.query<{ job_id: string; nominal_at: Date }>(
    'select job_id, nominal_at from attempts where final and number > 0',
  )
  expect(called.size).toBe(ended.length)
  const timesOf = new Map<string, number[]>()
  for (const { job_id, nominal_at } of ended) timesOf.set(job_id, [...(timesOf.get(job_id) ?? []), +nominal_at])
  for (const { jobId } of oneOffs) expect(timesOf.get(jobId)).toHaveLength(1)
  const skipped = await database.query<{ job_id: string; from_nominal: Date; to_nominal: Date }>(
    'select job_id, from_nominal, to_nominal from skips',
  )
  for (const skip of skipped) {
    const times = timesOf.get(skip.job_id) ?? []
    for (let at = +skip.from_nominal; at < +skip.to_nominal; at++) times.push(at)
    timesOf.set(skip.job_id, times)
  }
  recurring.forEach(({ jobId }, i) => {
    const first = +startAt + i * 4
    const decided = new Set(timesOf.get(jobId))
    for (let at = first; at <= Math.max(...decided); at += EVERY_MS) expect(decided).toContain(at)
  })
})

async function startNode(options: Parameters<typeof Belfry.start>[0]): Promise<Belfry> {
  const node = await Belfry.start({ ...options, allowPrivateTargets: true })
  onTestFinished(() => node.stop())
  return node
}

async function pauseAndResume(jobs: Belfry['jobs'], jobId: string): Promise<unknown> {
  await jobs.pause(jobId)
  return jobs.resume(jobId)
}
