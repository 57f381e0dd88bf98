import type { Answer, Order } from './perform-apart.ts'
import { NotHere } from './workload.ts'
import { WORKLOADS } from './workloads/index.ts'

/** A process for one subject: takes one order, performs it, answers, ends. */

async function perform(order: Order): Promise<Answer> {
  try {
    const workload = WORKLOADS.find(({ name }) => name === order.workload)
    const subject = workload?.subjects.find(({ name }) => name === order.subject)
    if (!subject) throw new Error(`no subject ${order.subject} in ${order.workload}`)
    const measurements = await subject.perform(order.setting)
    const unknown = measurements.find(({ value }) => !Number.isFinite(value))
    if (unknown) throw new Error(`${unknown.name} came to ${unknown.value}`)
    return { kind: 'measured', measurements }
  } catch (error) {
    if (error instanceof NotHere) return { kind: 'skipped', reason: error.message }
    return { kind: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

process.once('message', async (order: Order) => {
  const answer = await perform(order)
  // Whatever a peer has left open must not keep the process alive.
  process.send?.(answer, () => process.exit(0))
})
