import { tooLarge } from './job-sizes.ts'

/** The fields of a job, as the API takes them. */
export type JobFields = Readonly<Record<string, unknown>>

/** One entry of a foreign file: where it stands, what it says, and what becomes of it. */
export interface Entry {
  /** `line 12`, `document 2`. */
  place: string
  /** What tells it apart for whoever knows the file. */
  source: string
  plan: Plan
}

export type Plan =
  | {
      kind: 'job'
      name: string
      job: JobFields
      /** It exists there but does not run: it is paused here. */
      isSuspended: boolean
      /** What will not be as it was, a sentence each. */
      differences: readonly string[]
    }
  | { kind: 'refused'; reason: string }

export interface Read {
  entries: readonly Entry[]
  /** What is in the file, is no schedule, and was passed over. */
  passedOver: readonly string[]
}

export interface ReadOptions {
  queue: string
  /** For entries that name no zone of their own. */
  timezone?: string
}

/** Why one entry cannot be taken over; the others still can. */
export class NotTaken extends Error {}

/** Reads one entry; whatever is wrong with it concerns it alone, even what nobody has thought of. */
export function readEntry(place: string, source: string, read: () => Plan): Entry {
  try {
    const plan = read()
    const problem = plan.kind === 'job' ? tooLarge(plan.name, plan.job) : null
    return { place, source, plan: problem === null ? plan : { kind: 'refused', reason: problem } }
  } catch (error) {
    const { message } = error as Error
    const reason = error instanceof NotTaken ? message : `it cannot be read: ${message}`
    return { place, source, plan: { kind: 'refused', reason } }
  }
}

export const workDiffers = (what: string, queue: string): string =>
  `${what} become work for the queue ${queue}: a worker has to run them`

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
