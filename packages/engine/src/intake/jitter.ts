import { hash } from 'node:crypto'

/** A job's own stable offset within its jitter: the same at every fire time, on every node, after every restart. */
export function jitterOf(jobId: string, jitterMs: number): number {
  if (jitterMs === 0) return 0
  return hash('sha256', jobId, 'buffer').readUInt32BE(0) % (jitterMs + 1)
}
