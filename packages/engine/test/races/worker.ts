import type { Completion } from '../../src/executors/remote/judge-remote.ts'
import type { LeaseCall } from '../../src/executors/remote/lease-calls.ts'
import type { HeartbeatItem } from '../../src/executors/remote/remote-workers.ts'
import type { Node } from './setup.ts'

const USUAL = { max: 1, waitMs: 0, leaseMs: 30_000, prefetch: 0, begins: false }
const NEVER = new AbortController().signal

/** A worker that talks to one node. */
export function workerOf(node: Node, workerId = 'w', tenantId = 1) {
  const caller = { tenantId, mayServeAll: false, workerId }
  const { remote, registry } = node.engine
  return {
    lease: async (call: Partial<LeaseCall> = {}, gone: AbortSignal = NEVER) => {
      const queueId = await registry.queueId(tenantId, 'work')
      return remote.lease(caller, { queueId, queue: 'work' }, { ...USUAL, ...call }, gone)
    },
    /** The outcomes, in the order of the tokens. */
    complete: async (tokens: readonly string[], said: Completion = { status: 'succeeded' }) =>
      (
        await remote.complete(
          caller,
          tokens.map((token) => ({ token, said })),
        )
      ).map(({ outcome }) => outcome),
    release: async (tokens: readonly string[]) =>
      (
        await remote.complete(
          caller,
          tokens.map((token) => ({ token, said: { status: 'released' as const } })),
        )
      ).map(({ outcome }) => outcome),
    /** Their work never began. */
    giveBack: async (tokens: readonly string[]) =>
      (
        await remote.complete(
          caller,
          tokens.map((token) => ({ token, said: { status: 'released' as const, begun: false as const } })),
        )
      ).map(({ outcome }) => outcome),
    heartbeat: async (tokens: readonly string[], said: Omit<HeartbeatItem, 'token'> = {}) =>
      (
        await remote.heartbeat(
          caller,
          tokens.map((token) => ({ token, ...said })),
        )
      ).leases.map(({ outcome }) => outcome),
  }
}

export const tokensOf = ({ runs }: { runs: readonly { token: string }[] }): string[] => runs.map(({ token }) => token)
