import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import { type Overlap, SKIP_REASON } from '../../src/job/states.ts'
import { at, MINUTE, START, startKit } from './kit.ts'

export const leave = { running: 'leave' } as const
export const EVERY_TEN = {
  every: 'PT10M',
  startAt: at(10 * MINUTE),
  queue: 'reports',
  payload: 1,
  timeout: '1d',
} as const
export const minutesOf = (date: Date): number => (date.getTime() - START) / MINUTE

/** A kit whose handler stays at work until it is told how to end; unless it is deaf, also until it is asked to stop. */
export async function setup(handlerIs: 'listening' | 'deaf' = 'listening') {
  // Passing time stops at every heartbeat of a handler at work.
  const t = await startKit({ leaseMs: 30 * MINUTE })
  const atWork: { run: ActiveRun; end: (how?: (run: ActiveRun) => unknown) => void }[] = []
  const started: number[] = []
  const handler = (run: ActiveRun) =>
    new Promise((resolve, reject) => {
      const end = (how: (run: ActiveRun) => unknown = () => undefined) => {
        atWork.splice(atWork.indexOf(mine), 1)
        Promise.resolve(run).then(how).then(resolve, reject)
      }
      const mine = { run, end }
      started.push(minutesOf(run.nominalAt))
      atWork.push(mine)
      if (handlerIs === 'listening')
        run.signal.addEventListener('abort', () => end((aborted) => aborted.cancel('asked to stop')))
    })
  await t.kit.handle('reports', handler, { concurrency: 100 })
  const end = async (how?: (run: ActiveRun) => unknown) => {
    atWork[0]?.end(how)
    await t.kit.settle(leave)
  }
  const runs = async (jobId: string) =>
    (await t.kit.runs.list({ jobId, limit: 1_000 })).items
      .map(({ nominalAt, status }) => `${minutesOf(nominalAt)} ${status}`)
      .reverse()
  const skips = async (jobId: string) =>
    (await t.skipsOf(jobId)).map(({ from, to, reason, count }) => [
      minutesOf(from),
      Math.floor(minutesOf(to)),
      Object.keys(SKIP_REASON)[reason - 1],
      count,
    ])
  const create = async (overlap: Overlap, more: object = {}) =>
    (await t.kit.jobs.create({ ...EVERY_TEN, overlap, ...more })).jobId
  const pass = (minutes: number) => t.kit.pass(minutes * MINUTE, leave)
  return { ...t, atWork, started, end, runs, skips, create, pass }
}
