import { Backfills } from './backfills.ts'
import { Batches } from './batches.ts'
import { Calendars } from './calendars.ts'
import { DeadLetters } from './dead-letters.ts'
import { Jobs } from './jobs.ts'
import type { Engine } from './node/engine.ts'
import { Runs } from './runs.ts'

/** The parts of the library, of a node that runs by itself or of one that a test moves by hand. */
export class Library {
  readonly jobs: Jobs
  readonly runs: Runs
  readonly deadLetters: DeadLetters
  readonly backfills: Backfills
  readonly batches: Batches
  readonly calendars: Calendars

  constructor(engine: Engine) {
    this.jobs = new Jobs(engine)
    this.runs = new Runs(engine)
    this.deadLetters = new DeadLetters(engine)
    this.backfills = new Backfills(engine)
    this.batches = new Batches(engine)
    this.calendars = new Calendars(engine)
  }
}
