import type { Definition } from '../job/definition.ts'
import { Definitions } from '../leases/definitions.sql.ts'
import type { Lease } from '../leases/lease.ts'
import type { Queryable } from '../store/database.ts'
import { readRunPayloads } from './run-payloads.sql.ts'

type JobRef = Parameters<Definitions['of']>[0][number]

const turned = (job: JobRef): JobRef => ({ ...job, oneOff: !job.oneOff })

/**
 * Definitions of jobs, and of runs that were triggered with a payload of their own. Such a run says of itself that it is a one-off when
 * its job recurs, and the other way round. So it is not found where others are, and only it costs a second look: its job's
 * definition stands in the other place, its payload in `run_payloads`.
 */
export class RunDefinitions extends Definitions {
  readonly #db: Queryable

  constructor(db: Queryable) {
    super(db)
    this.#db = db
  }

  /** Of jobs, wherever they are: what a run's own payload is does not matter here. */
  override async of(jobs: readonly JobRef[]): Promise<Map<string, string>> {
    const found = await super.of(jobs)
    const missing = jobs.filter(({ jobId }) => !found.has(jobId))
    if (missing.length === 0) return found
    for (const [jobId, json] of await super.of(missing.map(turned))) found.set(jobId, json)
    return found
  }

  /** Gives each lease the definition that its attempt performs; one whose job is gone stays without. */
  async define(leases: readonly Lease[]): Promise<void> {
    // Apart: a batch may hold runs of one job of both kinds.
    for (const isOneOff of [true, false]) {
      const here = leases.filter(({ oneOff }) => oneOff === isOneOff)
      const found = here.length === 0 ? NONE : await super.of(here)
      for (const lease of here) lease.definition = found.get(lease.jobId) ?? null
      const elsewhere = here.filter(({ definition }) => definition === null)
      if (elsewhere.length > 0) await this.#defineOwn(elsewhere)
    }
  }

  async #defineOwn(leases: readonly Lease[]): Promise<void> {
    const jobs = await super.of(leases.map(turned))
    if (jobs.size === 0) return
    const payloads = await readRunPayloads(this.#db, leases)
    leases.forEach((lease, i) => {
      const [json, payload] = [jobs.get(lease.jobId), payloads[i]]
      if (json !== undefined && payload != null) lease.definition = withPayload(json, payload)
    })
  }
}

const NONE: ReadonlyMap<string, string> = new Map()

function withPayload(definitionJson: string, payloadJson: string): string {
  const { payloadRef: _, ...definition } = JSON.parse(definitionJson) as Definition
  return JSON.stringify({ ...definition, payload: JSON.parse(payloadJson) })
}
