import { expect, inject, onTestFinished, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import { startTestKit } from '../../src/testing/index.ts'
import { createDatabase } from '../database.ts'

const START = Date.UTC(2026, 1, 2)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEKS = 3
/** Minutes of the day, all that the crons below can say; the brute force needs no more of cron than this. */
const CRONS: Record<string, readonly number[]> = {
  '0 6 * * *': [360],
  '30 */8 * * *': [30, 510, 990],
  '15 3,15 * * *': [195, 915],
  '45 9 * * *': [585],
}
const NAMES = Object.keys(CRONS)
const POLICIES = [
  { policy: 'latest', window: '1h' },
  { policy: 'latest', window: '2d' },
  { policy: 'all', window: '3d' },
  { policy: 'none' },
] as const

interface Written {
  jobId: string
  /** From after each instant on. */
  crons: { after: number; cron: string }[]
  pauses: { from: number; to: number | null; actor: string }[]
}

/** Every minute since the start is looked at, with what was in force then. */
function bruteForce({ crons }: Written, until: number): number[] {
  const times: number[] = []
  for (let at = START; at <= until; at += MINUTE) {
    const cron = crons.findLast(({ after }) => at > after)?.cron ?? (crons[0]?.cron as string)
    if (CRONS[cron]?.includes((at % DAY) / MINUTE)) times.push(at)
  }
  return times
}

test.each([1, 2])(
  'every time of a random history of three weeks has one verdict, which is what happened (%i)',
  async (seed) => {
    const random = seededRandom(seed)
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random.float() * items.length)] as Item
    const database = await createDatabase({ days: { around: START, ahead: 2 } })
    onTestFinished(database.drop)
    const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: START, seed })
    onTestFinished(() => kit.stop())
    const performed = new Set<string>()
    await kit.handle('work', (run) => {
      performed.add(`${run.jobId} ${run.nominalAt.getTime()}`)
      if (random.float() < 0.2) throw new Error('not today')
    })
    const as = async () => {
      const actor = `bk_${pick(['ada', 'bob', 'eve'])}`
      return { actor, jobs: (await kit.tenant('default', actor)).jobs }
    }
    const written: Written[] = []
    for (const catchUp of POLICIES) {
      const cron = pick(NAMES)
      const { jobs } = await as()
      const jitter = random.float() < 0.3 ? { jitter: '20m' } : {}
      const retry = { maxAttempts: 3, backoff: { type: 'fixed', initial: '1h' } }
      const { jobId } = await jobs.create({ queue: 'work', payload: 0, cron, catchUp, retry, ...jitter })
      written.push({ jobId, crons: [{ after: START - 1, cron }], pauses: [] })
    }
    const outages: { from: number; to: number }[] = []
    const triggered = new Map<string, number>()
    while (kit.clock.now() < START + WEEKS * 7 * DAY) {
      const now = kit.clock.now()
      const one = pick(written)
      const { actor, jobs } = await as()
      const open = one.pauses.find(({ to }) => to === null)
      switch (
        pick(['pass', 'pass', 'pass', 'outage', 'pause', 'pause', 'update', 'update', 'update', 'payload', 'trigger'])
      ) {
        case 'pass':
          await kit.pass(Math.ceil(random.float() * 16) * HOUR)
          break
        case 'outage':
          kit.clock.advance(Math.ceil(random.float() * 60) * HOUR)
          outages.push({ from: now, to: kit.clock.now() })
          await kit.settle()
          break
        case 'pause':
          if (open) {
            await jobs.resume(one.jobId)
            open.to = now
          } else {
            await jobs.pause(one.jobId, { reason: 'because' })
            one.pauses.push({ from: now, to: null, actor })
          }
          break
        case 'update': {
          const cron = pick(NAMES)
          await jobs.update(one.jobId, { cron })
          one.crons.push({ after: now, cron })
          break
        }
        case 'payload':
          await jobs.update(one.jobId, { payload: now })
          break
        default: {
          const done = await jobs.trigger(one.jobId, { overlap: 'allow' })
          const { nominalAt } = (await kit.runs.get(done.runId as string)) as { nominalAt: Date }
          triggered.set(`${one.jobId} ${nominalAt.getTime()}`, now)
        }
      }
      kit.clock.advance(MINUTE + 1_234)
    }
    await kit.settle()
    const until = kit.clock.now()
    const { jobs } = await as()
    for (const one of written) {
      const range = { from: new Date(START), to: new Date(until + 1), limit: 7 }
      const found: Awaited<ReturnType<typeof jobs.explainRange>>['items'] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await jobs.explainRange(one.jobId, cursor === undefined ? range : { ...range, cursor })
        found.push(...page.items)
        cursor = page.nextCursor
      }
      const keyOf = (at: number) => `${one.jobId} ${at}`
      const times = found.map(({ nominalAt }) => nominalAt?.getTime() ?? 0)
      const scheduled = times.filter((at) => !triggered.has(keyOf(at)))
      expect(scheduled).toEqual(bruteForce(one, until))
      expect(times.filter((at) => triggered.has(keyOf(at))).length).toBe(
        [...triggered.keys()].filter((key) => key.startsWith(one.jobId)).length,
      )
      for (const { nominalAt, verdict, reason, by, run, sentence } of found) {
        const at = nominalAt?.getTime() ?? 0
        const about = `${sentence} (${reason})`
        const pause = one.pauses.find(({ from, to }) => at > from && (to === null || at <= to))
        if (performed.has(keyOf(at))) expect(['ran', 'waiting'], about).toContain(verdict)
        else if (verdict === 'waiting') expect(run?.attempt ?? 0, about).toBe(0)
        else {
          expect(verdict, about).toBe('skipped')
          if (pause) expect([reason, by?.actor], about).toEqual(['paused', pause.actor])
          else if (reason === 'catch_up_expired')
            expect(
              outages.some(({ from, to }) => at >= from && at <= to),
              about,
            ).toBe(true)
          else expect(['overlap', 'catch_up_expired'], about).toContain(reason)
        }
        // Asked alone, it is the same.
        if (random.float() < 0.1)
          expect(await jobs.explain(one.jobId, new Date(at))).toMatchObject({ verdict, reason, sentence })
      }
    }
  },
)
