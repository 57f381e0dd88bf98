import { inject, onTestFinished } from 'vitest'
import { type ChangeView, listChanges } from '../../src/audit/list-changes.sql.ts'
import type { JobInput } from '../../src/intake/job-input.ts'
import { Jobs } from '../../src/jobs.ts'
import type { Logger } from '../../src/runtime/logger.ts'
import { startTestNode, type TestNode } from '../../src/testing/test-node.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'

/** A Thursday. */
export const START = Date.UTC(2026, 0, 1)
export const HOUR = 3_600_000
export const DAY = 24 * HOUR
/** As long as a node waits for those who create by the old days. */
export const SETTLE_MS = 10_000

/** An instant of January 2026 in UTC. */
export const at = (day: number, hour: number, minute = 0): Date => new Date(Date.UTC(2026, 0, day, hour, minute))

/** A schema, and nodes in it whose time stands still and whose steps are made by hand. */
export async function startNodes(options: { zoneData?: string; logger?: Logger } = {}) {
  const { schema, query, connection, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  let seed = 0
  const startNode = async (more: { zoneData?: string; logger?: Logger; start?: number } = {}): Promise<TestNode> => {
    const node = await startTestNode({
      ...{ database: inject('postgres'), schema, shards: 4, start: START, seed: ++seed },
      ...{ leaseMs: 30_000, cancelGraceMs: 10_000, ...options, ...more },
    })
    onTestFinished(() => node.readers.close().then(() => node.db.close()))
    return node
  }
  const node = await startNode()
  const { engine, db } = node
  await engine.pulse.runOnce()
  const jobs = new Jobs(engine)
  const create = async (input: JobInput): Promise<string> => (await jobs.create(input)).jobId
  const changesOf = async (jobId: string, tenantId = 1): Promise<ChangeView[]> =>
    (await listChanges(db, { tenantId, subject: 'job', subjectId: jobId })).items
  const timerOf = async (jobId: string) => {
    const [row] = await query<{ nominal_at: Date; due_at: Date | number }>(
      'select nominal_at, due_at from timers where job_id = $1',
      [jobId],
    )
    return row ? { nominalAt: row.nominal_at, dueAt: row.due_at } : null
  }
  const runsOf = async (jobId: string): Promise<Date[]> =>
    (await query<{ nominal_at: Date }>('select nominal_at from runs where job_id = $1 order by 1', [jobId])).map(
      ({ nominal_at }) => nominal_at,
    )
  return {
    schema,
    query,
    connection,
    startNode,
    node,
    engine,
    db,
    clock: node.clock,
    jobs,
    create,
    changesOf,
    timerOf,
    runsOf,
  }
}

/** The pulse says what there is to do, and it is done as far as it can be now. */
export async function replan({ engine }: TestNode): Promise<void> {
  await engine.pulse.runOnce()
  for (let i = 0; i < 1_000; i++) if ((await engine.replanning.calendars.runOnce()).waitMs === 1_000) return
  throw new Error('replanning did not come to its end')
}

/** And once more, when nobody can be creating by the old days. */
export async function replanTwice(node: TestNode): Promise<void> {
  await replan(node)
  node.clock.advance(SETTLE_MS)
  await replan(node)
}
