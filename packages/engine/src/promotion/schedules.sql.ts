import type { CatchUp, ResolvedSpec } from '../job/definition.ts'
import { DEFAULT_CATCH_UP } from '../job/definition.ts'
import { FireTimes } from '../schedule/fire-times.ts'
import { canonicalSchedule, type Schedule, scheduleId } from '../schedule/schedule.ts'
import type { Aside } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const READ = statement(
  'read_schedules',
  `select s.id, s.spec from unnest($1::smallint[], $2::bigint[]) as u (shard, id) cross join lateral (
     select s.id, s.spec from belfry.schedules s where s.shard = u.shard and s.id = u.id limit 1) s`,
)
const INTERN = statement(
  'intern_schedules',
  `insert into belfry.schedules (id, shard, spec)
   select u.id, u.shard, u.spec from unnest($1::bigint[], $2::smallint[], $3::text[]) as u (id, shard, spec)
   order by u.shard, u.id on conflict do nothing`,
)

export interface KnownSchedule {
  spec: ResolvedSpec
  schedule: Schedule
  catchUp: CatchUp
}

const MAX_INTERNED = 100_000

/**
 * The interned schedules: read once per process, compiled, with their fire times remembered. A schedule row is never changed
 * or removed, so schedules are read and written outside of transactions: nobody waits for them, and one that no job refers
 * to in the end is harmless.
 */
export class Schedules {
  readonly #db: Aside
  readonly #fireTimes = new FireTimes()
  readonly #specs = new Map<string, ResolvedSpec>()
  readonly #interned = new Set<string>()

  constructor(db: Aside) {
    this.#db = db
  }

  /** Makes sure that these can be answered without asking the database again. */
  async load(wanted: readonly { shard: number; scheduleId: string }[]): Promise<void> {
    if (this.#specs.size > MAX_INTERNED) this.#specs.clear()
    const missing = new Map<string, { shard: number; scheduleId: string }>()
    for (const want of wanted) if (!this.#specs.has(want.scheduleId)) missing.set(want.scheduleId, want)
    if (missing.size === 0) return
    const list = [...missing.values()]
    const rows = await this.#db.query<[string, string]>(READ, [
      list.map(({ shard }) => shard),
      list.map((want) => want.scheduleId),
    ])
    for (const [id, spec] of rows) this.#specs.set(id, JSON.parse(spec) as ResolvedSpec)
  }

  get(id: string): KnownSchedule | null {
    const spec = this.#specs.get(id)
    return spec ? this.#known(id, spec) : null
  }

  /** Of a job that refers to it: a schedule is never removed. */
  async mustGet(wanted: { shard: number; scheduleId: string }): Promise<KnownSchedule> {
    await this.load([wanted])
    const known = this.get(wanted.scheduleId)
    if (known === null) throw new Error(`the schedule ${wanted.scheduleId} is missing in shard ${wanted.shard}`)
    return known
  }

  /** For a job that is being planned now. */
  of(spec: ResolvedSpec): KnownSchedule & { id: string } {
    const id = scheduleId(spec)
    return { id, ...this.#known(id, spec) }
  }

  /** Writes schedules that jobs of these shards will refer to, before the jobs are written. */
  async intern(uses: readonly { shard: number; spec: ResolvedSpec }[]): Promise<void> {
    const missing = new Map<string, { id: string; shard: number; spec: ResolvedSpec }>()
    for (const { shard, spec } of uses) {
      const id = scheduleId(spec)
      if (!this.#interned.has(`${shard}.${id}`)) missing.set(`${shard}.${id}`, { id, shard, spec })
    }
    if (missing.size === 0) return
    const list = [...missing.values()]
    await this.#db.query(INTERN, [
      list.map(({ id }) => id),
      list.map(({ shard }) => shard),
      list.map(({ spec }) => canonicalSchedule(spec)),
    ])
    if (this.#interned.size > MAX_INTERNED) this.#interned.clear()
    for (const key of missing.keys()) this.#interned.add(key)
  }

  #known(id: string, spec: ResolvedSpec): KnownSchedule {
    return { spec, schedule: this.#fireTimes.get(id, () => spec), catchUp: spec.catchUp ?? DEFAULT_CATCH_UP }
  }
}
