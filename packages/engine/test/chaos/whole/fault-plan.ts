import type { Random } from '../../../src/runtime/random.ts'

/** What is done to which process, and how long after the start. A process is back `lastsMs` later. */
export type Fault =
  | { kind: 'kill' | 'stop'; atMs: number; member: string; lastsMs: number }
  | { kind: 'crash'; atMs: number; lastsMs: number }

export const MEMBERS = {
  node: ['node-1', 'node-2', 'node-3'],
  library: ['library-1', 'library-2'],
  worker: ['worker-1', 'worker-2', 'worker-3', 'worker-4'],
} as const

/** Of each kind so many may be down at a time: the fleet is to work under faults, not to be absent. */
const MOST_DOWN = { node: 2, library: 1, worker: 3 } as const
const CRASHES = 2
const PAUSE_MS = { least: 800, most: 3_500 }
const DOWN_MS = { least: 300, most: 5_000 }
const STOPPED_MS = { least: 1_000, most: 40_000 }
/** So long PostgreSQL counts as away after a crash: it repairs itself, and the nodes connect again. */
const CRASH_MS = 10_000

/** Everything that will happen within `durationMs`, in order. All of it is over by then. */
export function planFaults(random: Random, durationMs: number, crashes = CRASHES): Fault[] {
  const between = ({ least, most }: { least: number; most: number }) =>
    Math.round(least + random.float() * (most - least))
  const faults: Fault[] = []
  for (let crash = 1; crash <= crashes; crash++) {
    const atMs = Math.round(durationMs * ((crash - 0.5) / crashes + ((random.float() - 0.5) * 0.4) / crashes))
    faults.push({ kind: 'crash', atMs, lastsMs: CRASH_MS })
  }
  const backAt = new Map<string, number>()
  for (let atMs = between(PAUSE_MS); atMs < durationMs; atMs += between(PAUSE_MS)) {
    const free = Object.entries(MEMBERS).flatMap(([role, names]) => {
      const up = names.filter((name) => (backAt.get(name) ?? 0) <= atMs)
      return names.length - up.length < MOST_DOWN[role as keyof typeof MEMBERS] ? up : []
    })
    const kind = random.float() < 0.6 ? 'kill' : 'stop'
    // Squared, so that most stops are about as long as a lease and few are very long.
    const stoppedMs = Math.round(STOPPED_MS.least + random.float() ** 2 * (STOPPED_MS.most - STOPPED_MS.least))
    const lastsMs = kind === 'kill' ? between(DOWN_MS) : stoppedMs
    const member = free[Math.floor(random.float() * free.length)]
    if (member === undefined || atMs + lastsMs > durationMs) continue
    backAt.set(member, atMs + lastsMs + 1_000)
    faults.push({ kind, atMs, member, lastsMs })
  }
  return faults.sort((one, other) => one.atMs - other.atMs)
}
