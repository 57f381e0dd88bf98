import { inject, onTestFinished } from 'vitest'
import { startTestKit, type TestKit, type TestKitOptions } from '../../src/testing/index.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'

/** The instant at which the kit's clock begins. */
export const START = Date.UTC(2026, 0, 1)
export const SECOND = 1_000
export const MINUTE = 60_000
export const HOUR = 3_600_000

export const at = (msAfterStart: number): Date => new Date(START + msAfterStart)

export interface Skip {
  from: Date
  to: Date
  reason: number
  count: number | null
}

/** A kit in a schema of its own, and a pool of plain connections that look into it. */
export async function startKit(options: Omit<TestKitOptions, 'database'> = {}) {
  const { schema, pool, query, fabricate, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  const kit = await startTestKit({ database: inject('postgres'), schema, seed: 1, ...options })
  onTestFinished(() => kit.stop())
  const skipsOf = (jobId: string): Promise<Skip[]> =>
    query(
      `select from_nominal as from, to_nominal as to, reason, count from skips where job_id = $1 order by from_nominal`,
      [jobId],
    )
  return { kit, pool, query, fabricate, skipsOf }
}

/** Performs a queue and remembers what it performed: nominal times, attempts, and anything `perform` does besides. */
export async function record(kit: TestKit, queue: string, perform: Parameters<TestKit['handle']>[1] = () => {}) {
  const seen: { id: string; nominalAt: Date; attempt: number; failures: number; at: Date; payload: unknown }[] = []
  await kit.handle(queue, (run) => {
    const { id, nominalAt, attempt, failures, payload } = run
    seen.push({ id, nominalAt, attempt, failures, payload, at: kit.now() })
    return perform(run)
  })
  return seen
}

/** A handler that stays at work until it is told to go on. */
export function held() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  return { gate, letGo: () => letGo() }
}
