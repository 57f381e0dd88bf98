import { DELIVERY, KEYED, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Database, Queryable } from '../store/database.ts'
import { isAwaited } from '../store/is-awaited.ts'
import { statement } from '../store/statement.ts'
import { type Fence, isPacked, type PackedLease } from './lease.ts'
import type { Receipt } from './receipt.ts'

/**
 * Runs in receipts. Whoever ends or lifts runs of a receipt holds it in share mode until the commit; whoever takes it apart
 * locks it alone, and only the statement after that looks which of its runs have ended. So a run leaves its receipt once:
 * into history by its holder, or into a row, of which the fence takes care from then on.
 */
const LOCK = statement(
  'lock_receipts',
  'select c.holder from belfry.receipts c where c.holder = any($1::bigint[]) order by c.holder, c.tenant_id, c.queue_id for update',
)
const OF_JOB = statement('receipts_of_job', 'select c.holder from belfry.receipts c where c.job_ids @> array[$1::uuid]')
const OF_JOBS = statement(
  'receipts_of_jobs',
  `select distinct c.holder from belfry.receipts c where exists (select from unnest(c.job_ids) as j (id) where j.id in (select unnest($1::uuid[])))`,
)
const EXPIRED = statement(
  'expired_receipts',
  'select c.holder from belfry.receipts c where c.lease_until <= to_timestamp($1::float8 / 1000) order by c.lease_until limit 10 offset $2',
)
const ROW_COLUMNS = `nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version, attempt, failures,
     timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents, limit_key`
/**
 * A first attempt, as its claim would have written it; the turn of a leased run is never asked for. Who adds the first edge to a job while its
 * run stands in a receipt takes that apart before.
 */
const fixed = (receipt: string): string =>
  `${RUN_STATE.leased}, u.priority, u.cause, case when u.limit_key is null then ${DELIVERY.at_least_once} else ${DELIVERY.at_least_once + KEYED} end,
     ${receipt}.one_off, false, ${isAwaited('u')}, u.limit_key`
const hasNotEnded = (run: string, receipt: string): string =>
  `not exists (
     select from belfry.attempts a where a.shard = ${run}.shard and a.job_id = ${run}.job_id and a.nominal_at = ${run}.nominal_at
       and a.finished_at >= ${receipt}.leased_at - interval '1 day' and a.number = 1 offset 0)`
/** What has not ended becomes rows. Every attempt leaves a history row with its number, however it ends. */
const UNPACK = statement(
  'unpack_receipts',
  `with gone as (
     delete from belfry.receipts c where c.holder = any($1::bigint[]) returning c.*
   )
   insert into belfry.runs (${ROW_COLUMNS})
   select u.nominal_at, u.due_at, 0, c.holder, c.leased_at, c.lease_until, c.leased_at + u.timeout_ms * interval '1 ms', u.job_id, c.tenant_id, c.queue_id,
     u.job_version, 1, 0, u.timeout_ms, u.shard, ${fixed('c')}
   from gone c cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.due_ats, c.job_versions, c.timeouts_ms, c.priorities, c.run_causes,
       c.limit_keys)
     as u (shard, job_id, nominal_at, due_at, job_version, timeout_ms, priority, cause, limit_key)
   where ${hasNotEnded('u', 'c')}
   on conflict do nothing`,
)
/** Some of a receipt's runs become rows while the receipt stays; who looks at it later finds the rows first. */
const LIFT = statement(
  'lift_runs',
  `with held as materialized (
     select c.holder, c.tenant_id, c.queue_id, c.one_off, c.leased_at, c.lease_until from belfry.receipts c
     where c.holder = any($1::bigint[]) for key share skip locked
   )
   insert into belfry.runs (${ROW_COLUMNS})
   select to_timestamp(u.nominal_at / 1000), to_timestamp(u.due_at / 1000), 0, u.holder, h.leased_at, h.lease_until, to_timestamp(u.deadline / 1000),
     u.job_id, h.tenant_id, h.queue_id, u.job_version, 1, 0, u.timeout_ms, u.shard, ${fixed('h')}
   from unnest($2::bigint[], $3::int[], $4::int[], $5::smallint[], $6::uuid[], $7::float8[], $8::float8[], $9::float8[], $10::int[],
       $11::int[], $12::smallint[], $13::smallint[], $14::bigint[])
     as u (holder, tenant_id, queue_id, shard, job_id, nominal_at, due_at, deadline, job_version, timeout_ms, priority, cause, limit_key)
   join held h on h.holder = u.holder and h.tenant_id = u.tenant_id and h.queue_id = u.queue_id
   on conflict do nothing`,
)
/** Whoever holds one takes it apart: nobody waits for that. */
const DISCARD = statement(
  'discard_receipts',
  `delete from belfry.receipts c where c.ctid = any (array(
     select c.ctid from belfry.receipts c where c.holder = any($1::bigint[]) for update skip locked))`,
)
/** Holders of whose receipts somebody holds one are passed over: some of its runs are just ending, or somebody takes it apart. */
const lockWhole = (holders: string): string =>
  `select c.holder from (
     select c.holder from belfry.receipts c where c.holder = any (${holders})
     order by c.holder, c.tenant_id, c.queue_id for update skip locked) c
   group by c.holder having count(*) = (select count(*) from belfry.receipts a where a.holder = c.holder)`
const LOCK_AT_HAND = statement('lock_receipts_at_hand', lockWhole('$1::bigint[]'))
const LOCK_OF_KEYS = statement(
  'lock_receipts_of_keys',
  lockWhole(`array(
       select h.packed_by from unnest($1::smallint[], $2::bigint[]) as k (shard, key) cross join lateral (
         select h.packed_by from belfry.held_slots h where /*shards h*/ h.shard = k.shard and h.limit_key = k.key offset 0) h)`),
)
const STILL_THERE = statement(
  'receipts_still_there',
  'select distinct c.holder from belfry.receipts c where c.holder = any($1::bigint[])',
)

/** The runs of these holders' receipts become rows, so that they are found like any other. */
async function unpack(tx: Queryable, holders: readonly string[]): Promise<void> {
  await tx.query(LOCK, [holders])
  await tx.execute(UNPACK, [holders])
}

export const unpackHolders = (db: Database, holders: readonly string[]): Promise<void> =>
  db.transaction((tx) => unpack(tx, holders))

/** The same, and nobody is waited for; answers those of whose receipts somebody holds one. */
const unpackAtHand = (db: Database, holders: readonly string[]): Promise<Set<string>> =>
  db.transaction(async (tx) => {
    const locked = await tx.query<[string]>(LOCK_AT_HAND, [holders])
    if (locked.length > 0) await tx.execute(UNPACK, [locked.flat()])
    return new Set((await tx.query<[string]>(STILL_THERE, [holders])).flat())
  })

/** The same where it is not known whether these holders have a receipt: usually none does. */
export async function unpackRunsOfHolders(db: Database, holders: readonly string[]): Promise<void> {
  const found = await db.query<[string]>(STILL_THERE, [holders])
  if (found.length > 0) await unpackHolders(db, found.flat())
}

/** Before anybody changes the job's runs; answers whether there was a receipt that lists one. */
export async function unpackRunsOf(tx: Queryable, { jobId }: { jobId: string }): Promise<boolean> {
  const found = await tx.query<[string]>(OF_JOB, [jobId])
  if (found.length > 0) await unpack(tx, found.flat())
  return found.length > 0
}

/** The same for many jobs at once. */
export async function unpackRunsOfMany(tx: Queryable, jobIds: readonly string[]): Promise<boolean> {
  const found = await tx.query<[string]>(OF_JOBS, [jobIds])
  if (found.length > 0) await unpack(tx, found.flat())
  return found.length > 0
}

/** Before leased runs of these keys are changed. */
export async function unpackRunsOfKeys(tx: Queryable, keys: readonly { shard: number; key: string }[]): Promise<void> {
  const values = [keys.map(({ shard }) => shard), keys.map(({ key }) => key)]
  const found = await tx.query<[string]>(LOCK_OF_KEYS, values)
  if (found.length > 0) await tx.execute(UNPACK, [found.flat()])
}

/** Those whose holder has let them expire; the reaper closes the rows. What somebody holds is left for another time. */
export async function unpackExpired(db: Database, now: Instant): Promise<void> {
  for (let passed = 0; ; ) {
    const found = await db.query<[string]>(EXPIRED, [now, passed])
    if (found.length === 0) return
    const held = await unpackAtHand(db, found.flat())
    passed += found.filter(([holder]) => held.has(holder)).length
  }
}

/** The receipts of these leases, and what tells each lease among them, and when it was due. */
export const packedArrays = (leases: readonly PackedLease[]): ArrayValues[] => [
  [...new Set(leases.map((lease) => lease.holder))],
  leases.map((lease) => lease.holder),
  leases.map((lease) => lease.tenantId),
  leases.map((lease) => lease.queueId),
  leases.map((lease) => lease.shard),
  leases.map((lease) => lease.jobId),
  leases.map((lease) => lease.nominalAt),
  leases.map((lease) => lease.packed.dueAt),
]

const NOBODY: ReadonlySet<string> = new Set()

/** The receipts that this node has written. */
export class Receipts {
  readonly #db: Database
  #spent: string[] = []
  #areInTheWay = false

  constructor(db: Database) {
    this.#db = db
  }

  /** So many runs have ended while they stood in it. */
  settled(receipt: Receipt, count: number): void {
    receipt.left -= count
    if (receipt.left > 0 || !receipt.isOpen) return
    receipt.isOpen = false
    this.#spent.push(receipt.holder)
    // Counting the leases of a key looks up in history each run that a receipt with slots lists.
    if (receipt.kind === 'with slots') this.#areInTheWay = true
  }

  /** Others would be quicker if the spent ones were thrown away. */
  get areInTheWay(): boolean {
    return this.#areInTheWay
  }

  /** Makes sure that these leases have rows, if they are live at all. Who does not `wait` leaves those in a receipt that somebody holds. */
  async makeRows(leases: readonly Fence[], forOthers: 'wait' | 'leave' = 'wait'): Promise<void> {
    const doubtful = new Set(leases.filter(isPacked).map((lease) => lease.packed.receipt))
    for (const receipt of doubtful) if (!receipt.isInDoubt) doubtful.delete(receipt)
    if (doubtful.size > 0) await this.#unpack(doubtful, forOthers)
    const packed = leases.filter(isPacked)
    const toLift = packed.filter(
      ({ packed: { lifting, isEnding, receipt } }) => lifting === null && !isEnding && !receipt.isInDoubt,
    )
    if (toLift.length > 0) {
      const lifting = this.#lift(toLift, forOthers)
      for (const lease of toLift) lease.packed.lifting = lifting
    }
    await Promise.all(new Set(packed.map((lease) => lease.packed.lifting)))
  }

  async #lift(leases: readonly PackedLease[], forOthers: 'wait' | 'leave'): Promise<void> {
    const receipts = new Set(leases.map((lease) => lease.packed.receipt))
    let lifted: number
    try {
      lifted = await this.#db.execute(LIFT, [
        ...packedArrays(leases),
        leases.map((lease) => lease.deadline),
        leases.map((lease) => lease.jobVersion),
        leases.map((lease) => lease.deadline - lease.leasedAt),
        leases.map((lease) => lease.packed.priority),
        leases.map((lease) => lease.packed.cause),
        leases.map((lease) => lease.limitKey ?? null),
      ])
    } catch (error) {
      for (const lease of leases) lease.packed.lifting = null
      for (const receipt of receipts) receipt.isInDoubt = true
      throw error
    }
    if (lifted < leases.length) {
      // Somebody took a receipt apart, or is about to: that is waited for.
      for (const lease of leases) lease.packed.lifting = null
      for (const receipt of receipts) receipt.isInDoubt = true
      return this.#unpack(receipts, forOthers)
    }
    for (const lease of leases as readonly Fence[]) {
      if (lease.packed) this.settled(lease.packed.receipt, 1)
      lease.packed = null
    }
  }

  async #unpack(receipts: ReadonlySet<Receipt>, forOthers: 'wait' | 'leave'): Promise<void> {
    const holders = [...receipts].map((receipt) => receipt.holder)
    const held = forOthers === 'leave' ? await unpackAtHand(this.#db, holders) : NOBODY
    if (forOthers === 'wait') await unpackHolders(this.#db, holders)
    for (const receipt of receipts) if (!held.has(receipt.holder)) receipt.isOpen = false
  }

  /** Throws away the receipts that list nothing any more. One that is forgotten expires, and is found to be empty. */
  async discard(): Promise<void> {
    if (this.#spent.length === 0) return
    const spent = this.#spent
    this.#spent = []
    this.#areInTheWay = false
    try {
      await this.#db.execute(DISCARD, [spent])
    } catch (error) {
      this.#spent.push(...spent)
      throw error
    }
  }
}
