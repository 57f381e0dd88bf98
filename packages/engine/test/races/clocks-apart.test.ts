import { expect, test } from 'vitest'
import { MINUTE, type Node, START, setup } from './setup.ts'

const SECOND = 1_000
const nominal = (minute: number): Date => new Date(START + minute * MINUTE)

/** A job whose minute 10 has been performed by a node, while the clock of another stands 3 s before it. */
async function decidedByTheFaster(more: object = {}) {
  const t = await setup()
  const [fast, slow] = [await t.startNode(), await t.startNode()]
  const performed: Date[] = []
  await fast.handle('reports', (run) => {
    performed.push(run.nominalAt)
  })
  await fast.engine.calendars.put(1, 'holidays', { days: ['2026-03-01'] }, 'bk_a')
  const { jobId } = await fast.jobs.create({ cron: '*/10 * * * *', startAt: nominal(10), queue: 'reports', ...more })
  const work = async (node: Node) => {
    for (const shard of [0, 1]) node.engine.reader.want(shard, START)
    await node.readTimers()
    await node.promote()
    await node.claim('reports')
    await node.engine.handlers.settled()
  }
  fast.clock.advance(10 * MINUTE)
  slow.clock.advance(10 * MINUTE - 3 * SECOND)
  await work(fast)
  expect(performed).toEqual([nominal(10)])
  const later = async (ms: number) => {
    for (const node of [fast, slow]) {
      node.clock.advance(ms)
      await work(node)
      await work(fast)
    }
  }
  const decidedUntil = async () => {
    const [row] = await t.query<{ decided_until: Date }>('select decided_until from timers where job_id = $1', [jobId])
    return row?.decided_until
  }
  return { ...t, fast, slow, jobId, performed, later, decidedUntil }
}

test.each([
  ['a jitter', { jitter: '1s' }],
  ['days to leave out', { exclude: ['2026-03-01'] }],
  ['another rhythm', { cron: '*/5 * * * *' }],
])('a node whose clock is behind gives a job %s, and what was performed is not performed again', async (_, change) => {
  const t = await decidedByTheFaster()
  await t.slow.jobs.update(t.jobId, change)
  expect((await t.decidedUntil())?.getTime()).toBeGreaterThanOrEqual(nominal(10).getTime())
  await t.later(5 * SECOND)
  expect(t.performed).toEqual([nominal(10)])
  expect(await t.occurrences()).toHaveLength(1)
  await t.later(10 * MINUTE)
  expect(t.performed.at(-1)).toEqual(nominal(20))
})

test.each(['active', 'paused'] as const)(
  'a node whose clock is behind plans a job that is %s by its new calendar, and what was performed is not performed again',
  async (status) => {
    const t = await decidedByTheFaster({ exclude: [{ calendar: 'holidays' }] })
    if (status === 'paused') await t.fast.jobs.pause(t.jobId)
    await t.slow.engine.calendars.put(1, 'holidays', { days: ['2026-03-01', '2026-03-02'] }, 'bk_a')
    expect(await t.slow.engine.replanning.job.byCalendar(t.jobId, 'holidays')).not.toBe('same')
    if (status === 'paused') await t.slow.jobs.resume(t.jobId)
    await t.later(5 * SECOND)
    expect(t.performed).toEqual([nominal(10)])
    expect((await t.decidedUntil())?.getTime()).toBeGreaterThanOrEqual(nominal(10).getTime())
  },
)

test('a node whose clock is behind pauses and resumes a job, and what was performed is not performed again', async () => {
  const t = await decidedByTheFaster()
  await t.slow.jobs.pause(t.jobId)
  await t.slow.jobs.resume(t.jobId)
  await t.later(5 * SECOND)
  await t.slow.jobs.pause(t.jobId)
  await t.slow.jobs.resume(t.jobId, { missed: 'catch_up' })
  await t.later(5 * SECOND)
  expect(t.performed).toEqual([nominal(10)])
})
