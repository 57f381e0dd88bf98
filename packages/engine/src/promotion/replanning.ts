import type { Logger } from '../runtime/logger.ts'
import { zoneDataVersion } from '../runtime/zone-data.ts'
import { type ReplanDeps, ReplanJob } from './replan-job.ts'
import { Replanner } from './replanner.ts'
import { ZoneKeeper } from './zone-keeper.ts'

export interface ReplanningDeps extends ReplanDeps {
  logger: Logger
  shards: number
  /** The edition of zone data to reckon by; the runtime's unless given. */
  zoneData?: string | undefined
}

/** All that plans jobs anew whose rule changed without them: a calendar, or the rules of a zone. */
export class Replanning {
  readonly job: ReplanJob
  readonly calendars: Replanner
  readonly zones: ZoneKeeper

  constructor(deps: ReplanningDeps) {
    const replan = new ReplanJob(deps)
    this.job = replan
    this.calendars = new Replanner({ ...deps, replan })
    this.zones = new ZoneKeeper({ ...deps, replan, version: deps.zoneData ?? zoneDataVersion() })
  }
}
