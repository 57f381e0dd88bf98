import { statfsSync } from 'node:fs'
import { totalmem } from 'node:os'

const MB = 1024 * 1024
const GB = 1024 * MB

export interface Machine {
  memoryBytes: number
  freeDiskBytes: number
  /** What /dev/shm can take; parallel queries keep their shared memory there. */
  sharedMemoryBytes: number
}

export type ServerSettings = Record<string, string>

export function lookAtMachine(dataDir: string): Machine {
  return {
    memoryBytes: usableMemory(),
    freeDiskBytes: freeBytes(dataDir) ?? 8 * GB,
    sharedMemoryBytes: freeBytes('/dev/shm') ?? 0,
  }
}

/** Settings that fit the machine. Whatever was acknowledged is on the disk: the first three are never relaxed here. */
export function settingsFor(machine: Machine): ServerSettings {
  const sharedBuffers = within(machine.memoryBytes / 8, 128 * MB, 4 * GB)
  const walSize = within(machine.freeDiskBytes / 8, 512 * MB, 8 * GB)
  return {
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',

    max_connections: '200',
    shared_buffers: megabytes(sharedBuffers),
    effective_cache_size: megabytes(Math.max(machine.memoryBytes / 2, sharedBuffers)),
    work_mem: '16MB',
    maintenance_work_mem: megabytes(within(machine.memoryBytes / 32, 64 * MB, 512 * MB)),
    // Docker gives /dev/shm 64 MB by default, too little for a parallel query; files in the cluster have no such end.
    dynamic_shared_memory_type:
      machine.sharedMemoryBytes < 256 * MB && process.platform === 'linux' ? 'mmap' : platformMemory(),

    max_wal_size: megabytes(walSize),
    min_wal_size: megabytes(within(walSize / 4, 128 * MB, 1 * GB)),
    checkpoint_timeout: '10min',
    checkpoint_completion_target: '0.9',
    wal_compression: 'off',

    random_page_cost: '1.1',
    jit: 'off',

    // Rows live for seconds: dead ones must go as fast as they come.
    autovacuum_naptime: '10s',
    autovacuum_vacuum_cost_limit: '2000',

    timezone: 'UTC',
    log_timezone: 'UTC',
    lc_messages: 'C',
    log_checkpoints: 'off',
    log_autovacuum_min_duration: '-1',
    log_line_prefix: '%m [%p] ',
    client_encoding: 'UTF8',
  }
}

export function settingsFile(settings: ServerSettings, includes: readonly string[]): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`)
  return [
    '# Written by Belfry at every start. Settings of your own go into custom.conf beside this file; they win.',
    ...lines,
    ...includes.map((name) => `include '${name}'`),
    '',
  ].join('\n')
}

/** Passwords only over loopback; the Unix socket lies in a directory that nobody but the server's user can enter. */
export const HOST_RULES = [
  '# Written by Belfry at every start.',
  ...(process.platform === 'win32' ? [] : ['local all all trust']),
  'host all all 127.0.0.1/32 scram-sha-256',
  '',
].join('\n')

function platformMemory(): string {
  return process.platform === 'win32' ? 'windows' : 'posix'
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / MB)}MB`
}

function freeBytes(path: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    return null
  }
}

/** A container's limit counts, if there is one below the machine's memory. */
function usableMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
