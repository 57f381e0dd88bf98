import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Which process, for good: a pid alone is given again to others, at once in a container where every start counts from 1.
 * `place` is the boot and the pid namespace the numbers belong to; from another place nothing can be said about a pid.
 */
export interface ProcessIdentity {
  pid: number
  startedAt: string
  place: string
}

export type Liveness = 'alive' | 'dead' | 'elsewhere'

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startedAt: startOf(process.pid) ?? '', place: ownPlace() }
}

export function livenessOf(identity: ProcessIdentity): Liveness {
  if (identity.place !== ownPlace()) return 'elsewhere'
  const startedAt = startOf(identity.pid)
  return startedAt !== null && startedAt === identity.startedAt ? 'alive' : 'dead'
}

export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return null
    const { pid, startedAt, place } = value as Record<string, unknown>
    if (typeof pid !== 'number' || typeof startedAt !== 'string' || typeof place !== 'string') return null
    return { pid, startedAt, place }
  } catch {
    return null
  }
}

/** Whether there is a process of this number that still runs; a zombie, which nobody reaped, does not. */
export function isRunning(pid: number): boolean {
  return startOf(pid) !== null
}

function startOf(pid: number): string | null {
  if (process.platform === 'linux') return linuxStart(pid)
  if (!acceptsSignals(pid)) return null
  if (process.platform === 'win32') return ''
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return text === '' || text.startsWith('Z') ? null : text.replace(/^\S+\s+/, '')
  } catch {
    return null
  }
}

/** Among the fields that follow the state. */
const START_TIME = 18

function linuxStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? null : (fields.at(START_TIME) ?? '')
  } catch {
    return null
  }
}

function acceptsSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

let place: string | undefined

function ownPlace(): string {
  place ??= process.platform === 'linux' ? linuxPlace() : hostname()
  return place
}

function linuxPlace(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}
