import { at, HOUR, MINUTE, startKit } from './kit.ts'

export { at, HOUR, MINUTE, START } from './kit.ts'
export const DAY = 24 * HOUR
/** Not at the instant at which the kit's clock begins. */
export const TENTHS = { cron: '5,15,25,35,45,55 * * * *', queue: 'reports', payload: 1 } as const
export const minutes = (...list: number[]): Date[] => list.map((minute) => at(minute * MINUTE))
export const nominals = (seen: { nominalAt: Date }[]): Date[] => seen.map(({ nominalAt }) => nominalAt)

export async function setup() {
  const t = await startKit()
  /** All that a backfill could have changed. */
  const tables = async () => ({
    backfills: await t.query('select * from backfills'),
    runs: await t.query('select * from runs'),
    made: await t.query('select * from backfill_runs'),
    timers: await t.query('select * from timers'),
    changes: await t.query('select action from job_changes'),
  })
  return { ...t, tables }
}
