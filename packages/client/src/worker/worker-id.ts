import { hostname } from 'node:os'
import { processId } from './process-signals.ts'

/** Unique per start, and readable: an operator sees which machine and process it is. */
export function makeWorkerId(unique: string): string {
  const host =
    hostname()
      .replaceAll(/[^\w.-]/g, '-')
      .slice(0, 64) || 'worker'
  return `${host}-${processId()}-${unique.replaceAll('-', '').slice(0, 8)}`
}
