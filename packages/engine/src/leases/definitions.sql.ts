import type { Vital } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const READ_JOBS = statement(
  'read_job_definitions',
  `select u.job_id, j.version, j.definition
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select j.version, j.definition from belfry.jobs j
     where j.shard = u.shard and j.id = u.job_id limit 1) j`,
)
const READ_SPECS = statement(
  'read_spec_definitions',
  `select u.job_id, s.version, s.definition
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select s.version, s.definition from belfry.specs s
     where s.shard = u.shard and s.job_id = u.job_id limit 1) s`,
)

interface JobRef {
  shard: number
  jobId: string
  jobVersion: number
  oneOff: boolean
}

/** Recurring definitions by job, at the version they were read; half of them leave at a time when there are too many. */
const MAX_CACHED = 20_000

/** What jobs are to do, as read when their runs are leased. */
export class Definitions {
  readonly #db: Vital
  #recent = new Map<string, { version: number; json: string }>()
  #older = new Map<string, { version: number; json: string }>()

  constructor(db: Vital) {
    this.#db = db
  }

  /** The definition of a recurring job at the version or a later one, if it was read lately. */
  recent(job: { jobId: string; jobVersion: number }): string | null {
    const cached = this.#recent.get(job.jobId) ?? this.#older.get(job.jobId)
    return cached && cached.version >= job.jobVersion ? cached.json : null
  }

  /** The JSON of each job's definition, by job id. A job that is gone is not in the answer. */
  async of(jobs: readonly JobRef[]): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    const missing: JobRef[] = []
    for (const job of jobs) {
      const json = job.oneOff ? null : this.recent(job)
      if (json !== null) found.set(job.jobId, json)
      else missing.push(job)
    }
    await this.#read(
      READ_JOBS,
      missing.filter((job) => !job.oneOff),
      found,
    )
    await this.#read(
      READ_SPECS,
      missing.filter((job) => job.oneOff),
      found,
    )
    return found
  }

  async #read(from: typeof READ_JOBS, jobs: JobRef[], found: Map<string, string>): Promise<void> {
    if (jobs.length === 0) return
    const rows = await this.#db.query<[string, number, string]>(from, [
      jobs.map((job) => job.shard),
      jobs.map((job) => job.jobId),
    ])
    for (const [jobId, version, json] of rows) {
      found.set(jobId, json)
      if (from === READ_JOBS) this.remember(jobId, version, json)
    }
  }

  /** A recurring job's definition, read with its lease. */
  remember(jobId: string, version: number, json: string): void {
    if (this.#recent.size >= MAX_CACHED / 2) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(jobId, { version, json })
  }
}
