import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import { MINUTE, type Node } from './setup.ts'

/** So many that one batch does not always hold them all. */
export const MANY = 120
export const LEASE_MS = 30_000

/** A node that performs each run when it is told to. */
async function serving(node: Node) {
  const runs = new Map<string, { run: ActiveRun; end: (how?: () => unknown) => void }>()
  const queueId = await node.engine.registry.queueId(1, 'work')
  const handler = (run: ActiveRun) =>
    new Promise((resolve, reject) => {
      const end = (how: () => unknown = () => undefined) => {
        try {
          resolve(how())
        } catch (error) {
          reject(error)
        }
      }
      runs.set(run.jobId, { run, end })
      run.signal.addEventListener('abort', () => reject(new Error('stopped')))
    })
  node.engine.handle(queueId, handler, 1_000)
  const endAll = async () => {
    for (const { end } of runs.values()) end()
    await node.engine.handlers.settled()
  }
  return { runs, queueId, endAll }
}

/** The same, and it has claimed many runs at once. */
export async function claimed(node: Node, jobs: object[] = Array(MANY).fill({ queue: 'work', payload: 1 })) {
  const { runs, queueId, endAll } = await serving(node)
  const created = await node.jobs.createMany(jobs as never)
  node.engine.handlers.hint(queueId, 5, Number.MIN_SAFE_INTEGER)
  await node.claim('work')
  const of = (i: number) => runs.get(created[i]?.jobId ?? '') as { run: ActiveRun; end: (how?: () => unknown) => void }
  return { runs, of, endAll }
}

/** The same, and many runs were born leased to it; `fire` lets the next ones come. */
export async function promoted(node: Node, job: object) {
  const { runs, endAll } = await serving(node)
  const created = await node.jobs.createMany(Array(MANY).fill({ queue: 'work', payload: 1, ...job }) as never)
  const fire = async () => {
    node.clock.advance(MINUTE)
    for (const shard of [0, 1]) node.engine.reader.want(shard, node.clock.now())
    await node.readTimers()
    await node.promote()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await fire()
  const of = (i: number) => runs.get(created[i]?.jobId ?? '') as { run: ActiveRun; end: (how?: () => unknown) => void }
  return { runs, of, endAll, fire }
}
