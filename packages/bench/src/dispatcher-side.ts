import type { Belfry } from '@belfry/engine'
import { answerAsks } from './apart.ts'
import { startBelfry } from './belfry.ts'
import type { Setting } from './workload.ts'

/** A process that performs HTTP calls and nothing else, as one of several that share the work. */

export type DispatcherAsk = { kind: 'start'; setting: Setting } | { kind: 'stop' }

/** Time of the processor in microseconds, of this whole process, since it was asked to start. */
export interface DispatcherTold {
  cpuUs: number
}

let belfry: Belfry | null = null
let cpuBefore = process.cpuUsage()

answerAsks(async (ask: DispatcherAsk): Promise<DispatcherTold> => {
  if (ask.kind === 'start') {
    cpuBefore = process.cpuUsage()
    belfry = await startBelfry(ask.setting, { roles: ['dispatcher'], allowPrivateTargets: true })
    return { cpuUs: 0 }
  }
  const { user, system } = process.cpuUsage(cpuBefore)
  await belfry?.stop()
  return { cpuUs: user + system }
})
