import type { Clock } from '../../runtime/clock.ts'

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((wake) => clock.timer(ms, wake))
}
