import { BelfryError } from './errors.ts'
import { Complaints, isRecord } from './input/read-fields.ts'
import { knownWords } from './intake/input-of.ts'
import { keepOrigin } from './intake/keep-origin.ts'
import { holderOfName } from './intake/keys.sql.ts'
import { canonicalJson } from './intake/understand-fingerprint.ts'
import { type UnderstoodJob, understandJob } from './intake/understand-job.ts'
import type { WhenContext } from './intake/understand-when.ts'
import { inputWithDefaults } from './intake/with-defaults.ts'
import { type Definition, queueKindOf } from './job/definition.ts'
import { shardOfKey } from './job/ids.ts'
import type { Instant } from './runtime/clock.ts'
import type { TenantScope } from './tenant-scope.ts'

export interface Upserted {
  jobId: string
  created: boolean
  version: number
}

/** Each further try means that somebody else changed the same name at this moment. */
const MAX_TRIES = 10

/**
 * Makes the job of this name be as the input says: creates it, changes it if it differs, and leaves it alone if it does not.
 * Of two that do so at once, one creates; the other finds the name taken and looks again.
 */
export async function upsertJob(scope: TenantScope, name: string, input: unknown): Promise<Upserted> {
  const { engine, caller } = scope
  const said = named(name, input)
  // All that is wrong with it is said before anything is looked up.
  const understood = understandJob(said, { now: engine.clock.now(), tenant: caller.tenant })
  const { registry, known } = engine
  const job = await inputWithDefaults({ registry, queueSettings: known.queueSettings }, said, understood)
  const key = { shard: shardOfKey(caller.tenantId, name, engine.shards), tenantId: caller.tenantId, key: name }
  for (let tries = 1; ; tries++) {
    const holder = await holderOfName(engine.db, key)
    try {
      const version = holder === null ? null : await changed(scope, holder, job)
      if (holder !== null && version !== null) return { jobId: holder, created: false, version }
      await engine.quotas.admitJobs(caller.tenantId, 1)
      const made = await engine.intake.create(job, { tenant: caller.tenant, createdBy: caller.actor })
      if (made.deduplicated) throw heldByOther(name, made.jobId)
      return { jobId: made.jobId, created: true, version: 1 }
    } catch (error) {
      if (!(error instanceof BelfryError) || error.code !== 'name_taken') throw error
      if (tries === MAX_TRIES) throw stillRunning(name, error)
    }
  }
}

/** Null: the holder of the name has no future, so that the name is there to be taken. */
async function changed(scope: TenantScope, jobId: string, job: Record<string, unknown>): Promise<number | null> {
  const { jobChanges, registry } = scope.engine
  try {
    const { version } = await jobChanges.update(
      jobId,
      (definitionJson, nominalAt) => differing(scope, job, JSON.parse(definitionJson) as Definition, nominalAt),
      ({ queue, definition }, tenantId) => registry.queueId(tenantId, queue, queueKindOf(definition)),
      scope.caller.actor,
    )
    return version
  } catch (error) {
    if (error instanceof BelfryError && (error.code === 'already_due' || error.code === 'not_found')) return null
    throw error
  }
}

/** What the job shall become; null: it is that already. */
function differing(
  scope: TenantScope,
  job: Record<string, unknown>,
  stored: Definition,
  nominalAt: Instant | null,
): UnderstoodJob | null {
  const { tenant } = scope.caller
  const context = { now: scope.engine.clock.now(), tenant }
  // Without a start of its own, an interval counts from when it was first said, not from when it was last repeated; and
  // words that mean more than one time go on meaning it.
  const wanted = understandJob(job, { ...context, ...saidBefore(understandJob(job, context), stored) })
  const isSameTime =
    wanted.definition.after !== undefined ||
    wanted.when.kind === 'recurring' ||
    (wanted.when.kind === 'once' && wanted.when.at === nominalAt)
  const isSame = canonicalJson(JSON.parse(keepOrigin(wanted, stored).definitionJson)) === canonicalJson(stored)
  return isSame && isSameTime ? null : wanted
}

function saidBefore({ definition }: UnderstoodJob, stored: Definition): Pick<WhenContext, 'anchor' | 'known'> {
  const { schedule: wanted } = definition
  const { schedule } = stored
  if (!wanted || !schedule) return {}
  if (definition.when !== undefined) return knownWords(stored, null)
  if (!('every' in wanted) || !('every' in schedule)) return {}
  return wanted.every === schedule.every && wanted.timezone === schedule.timezone ? { anchor: schedule.anchor } : {}
}

function named(name: string, input: unknown): Record<string, unknown> {
  const complaints = new Complaints()
  if (!isRecord(input)) complaints.add('', 'a job must be an object such as { queue: "emails", payload: {} }')
  else {
    if (input.name !== undefined && input.name !== name) complaints.add('name', 'must be the name that is asked for')
    for (const field of ['idempotencyKey', 'idempotencyTtl'])
      if (input[field] !== undefined) complaints.add(field, 'is not needed: the name says which job is meant')
  }
  if (complaints.list.length > 0) throw complaints.error('invalid_job')
  return { ...(input as Record<string, unknown>), name }
}

/** What has the unique key is called otherwise, or would be the holder of the name. */
const heldByOther = (name: string, jobId: string): BelfryError =>
  new BelfryError('unique_conflict', `job ${jobId} has the unique key, so that there is no job "${name}"`)

const stillRunning = (name: string, cause: unknown): BelfryError =>
  new BelfryError('already_due', `the job "${name}" has become a run, which is still alive`, { cause })
