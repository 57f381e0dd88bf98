import type { Worker } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'

export const drainWorker: Command = {
  name: 'workers drain',
  summary: 'let a worker finish what it holds and take nothing more',
  operands: [{ name: 'id', about: "the worker's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const node = await api()
    const path = `/v1/workers/${encodeURIComponent(id)}`
    // Who was never there is not made by asking it to go.
    await node.ask('GET', path)
    const worker = await node.ask<Worker>('PUT', path, { body: { draining: true } })
    terminal.answer(worker, `${id} takes nothing more; it holds ${worker.inFlight}`)
  },
}
