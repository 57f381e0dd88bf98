export type { ManualClock } from '../runtime/clock.ts'
export { type SettleOptions, startTestKit, type TestKit, type TestKitOptions } from './test-kit.ts'
