/** What a workload is: the same piece of work, done by several subjects, each in a process and a database of its own. */

/** One number a subject came back with. Rounds are folded to their median by (name, subject). */
export interface Measurement {
  name: string
  value: number
  unit: string
}

/** What a subject is given. Nothing else reaches it, so that every subject starts from the same point. */
export interface Setting {
  /** A database made for this subject alone, empty. */
  databaseUrl: string
  pace: 'quick' | 'full'
  /** Multiplies every size; 1 unless somebody tries the bench itself out. */
  scale: number
  /** How many shards Belfry's schema is made with. */
  shards: number
}

/** Thrown by a subject that cannot take part here (no Redis, say): noted in the report, no failure. */
export class NotHere extends Error {
  override readonly name = 'NotHere'
}

export interface Subject {
  name: string
  perform(setting: Setting): Promise<Measurement[]>
}

export interface Workload {
  name: string
  summary: string
  subjects: readonly Subject[]
  /** How often every subject is measured; the rounds of all subjects alternate. */
  rounds: { quick: number; full: number }
}

/** The size of a piece of work at the pace asked for; whole batches, so that tails weigh the same everywhere. */
export function sized(setting: Setting, sizes: { quick: number; full: number }): number {
  return Math.max(1_000, Math.round((sizes[setting.pace] * setting.scale) / 1_000) * 1_000)
}

/** A subject whose result is wrong has no speed: the bench must fail, not report it. */
export function mustEqual(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${what}: expected ${expected}, found ${actual}`)
}
