import type pg from 'pg'
import { connect, readNumber } from './database.ts'
import { costs, type Spent, startMeter } from './meter.ts'
import { type Measurement, mustEqual, type Setting, sized } from './workload.ts'

/**
 * What PostgreSQL itself can do with the statements Belfry is built on, and nothing around them: no definitions, no
 * policies, no handlers. Nobody who keeps Belfry's promises can be faster, so these are what Belfry is measured against.
 *
 * - claim: runs are there already; claim, finish.
 * - staged: timers come due; promote to ready, claim, finish.
 * - direct: timers come due; promote already leased, finish.
 */
export type Floor = 'claim' | 'staged' | 'direct'

const LANES = 3
const BATCH = 1_000
const SHARDS = 64
const READ_AHEAD = 30_000
const CHUNK = 2_000
const DAY_MS = 86_400_000
const LEASE_MS = 30_000
const HOLDER = 7

const TABLES = `
  drop schema if exists floor cascade;
  create schema floor;
  set search_path = floor;
  create table timers (
    shard smallint, job_id uuid, due_at timestamptz(3) not null, primary key (shard, job_id)
  ) with (fillfactor = 80);
  create index on timers (shard, due_at);
  create table runs (
    shard smallint, job_id uuid, nominal_at timestamptz(3), queue int, turn bigint, state smallint, attempt smallint,
    lease_until timestamptz(3), holder int, primary key (shard, job_id, nominal_at)
  ) with (fillfactor = 70);
  create index on runs (queue, turn) where state = 0;
  create index on runs (shard, lease_until) where state = 1;
  create table attempts (
    shard smallint, job_id uuid, nominal_at timestamptz(3), attempt smallint, tenant_id int, holder int,
    started_at timestamptz(3), finished_at timestamptz(3), outcome smallint, error text
  ) partition by range (finished_at);
  create table attempts_ever partition of attempts for values from ('2020-01-01') to ('2100-01-01');
  create index on attempts (shard, job_id, nominal_at);
  create index on attempts (tenant_id, finished_at)`

/** Ids rise with creation, as UUIDv7 does; due times are shuffled against them, as in life. */
const LOAD_TIMERS = `
  insert into timers (shard, job_id, due_at)
  select i % ${SHARDS},
    (lpad(to_hex(1700000000000 + i), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid,
    date_trunc('milliseconds', now()) - interval '2 hours' + floor(random() * $1::int) * interval '1 millisecond'
  from generate_series(1, $1::int) i cross join lateral md5(i::text) h`

const LOAD_READY = `
  insert into runs (shard, job_id, nominal_at, queue, turn, state, attempt)
  select shard, job_id, due_at, 1, row_number() over (order by due_at), 0, 0 from timers`

const READ_DUE = `
  select shard, job_id, due_at from timers where shard = $1 and due_at <= $2 and due_at > $3
  order by due_at fetch first ${CHUNK} rows with ties`

const PROMOTE = `
  with sent as (
    select * from unnest($1::smallint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::bigint[])
      as s (shard, job_id, nominal_at, next_at, turn)
  ), advanced as (
    update timers t set due_at = sent.next_at from sent
    where t.shard = sent.shard and t.job_id = sent.job_id and t.due_at = sent.nominal_at
    returning t.shard, t.job_id, sent.nominal_at, sent.turn
  )
  insert into runs (shard, job_id, nominal_at, queue, turn, state, attempt, lease_until, holder)
  select shard, job_id, nominal_at, 1, turn, $6::smallint, $7::smallint, $8::timestamptz, $9::int from advanced
  on conflict do nothing returning turn`

const CLAIM = `
  update runs r set state = 1, attempt = attempt + 1, lease_until = $2, holder = ${HOLDER}
  from (
    select shard, job_id, nominal_at from runs where queue = 1 and state = 0
    order by turn limit $1 for update skip locked
  ) head
  where r.shard = head.shard and r.job_id = head.job_id and r.nominal_at = head.nominal_at
  returning r.shard, r.job_id, r.nominal_at`

const FINISH = `
  with sent as (
    select * from unnest(
      $1::smallint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::smallint[], $6::smallint[], $7::int[]
    ) as s (shard, job_id, nominal_at, at, outcome, attempt, holder)
  ), ended as (
    delete from runs r using sent
    where r.shard = sent.shard and r.job_id = sent.job_id and r.nominal_at = sent.nominal_at
      and r.attempt = sent.attempt and r.holder = sent.holder
    returning r.shard, r.job_id, r.nominal_at, r.attempt, r.holder, sent.at, sent.outcome
  )
  insert into attempts (shard, job_id, nominal_at, attempt, tenant_id, holder, started_at, finished_at, outcome)
  select shard, job_id, nominal_at, attempt, 1, holder, at, at, outcome from ended`

/** (shard, job id, due or nominal time) */
type Item = [number, string, Date]

export async function measureFloor(floor: Floor, name: string, setting: Setting): Promise<Measurement[]> {
  await drain(floor, setting.databaseUrl, 20_000)
  const runs = sized(setting, { quick: 200_000, full: 400_000 })
  const { seconds, spent } = await drain(floor, setting.databaseUrl, runs)
  return [{ name, value: runs / seconds, unit: 'runs/s' }, ...costs(name, spent, runs)]
}

async function drain(floor: Floor, databaseUrl: string, runs: number): Promise<{ seconds: number; spent: Spent }> {
  const admin = await connect(databaseUrl)
  await admin.query(TABLES)
  await admin.query(LOAD_TIMERS, [runs])
  await admin.query('analyze timers')
  if (floor === 'claim') {
    await admin.query(LOAD_READY)
    await admin.query('truncate timers')
    // Only once it is filled: statistics that say "empty" would mislead every plan that follows.
    await admin.query('analyze runs')
  }
  const work = new FloorWork(floor, databaseUrl, runs)
  const meter = await startMeter(admin)
  const startedAt = performance.now()
  await work.finishAll()
  const seconds = (performance.now() - startedAt) / 1_000
  const spent = await meter()
  mustEqual(`${floor} floor, attempts in history`, await readNumber(admin, 'select count(*) from attempts'), runs)
  await admin.end()
  return { seconds, spent }
}

class FloorWork {
  readonly #floor: Floor
  readonly #databaseUrl: string
  readonly #runs: number
  readonly #now = new Date()
  readonly #leaseUntil = new Date(this.#now.getTime() + LEASE_MS)
  readonly #due: Item[] = []
  #allRead = false
  #finished = 0
  #nextTurn = 1

  constructor(floor: Floor, databaseUrl: string, runs: number) {
    this.#floor = floor
    this.#databaseUrl = databaseUrl
    this.#runs = runs
  }

  async finishAll(): Promise<void> {
    const reader = this.#floor === 'claim' ? Promise.resolve() : this.#readAhead()
    await Promise.all([reader, ...Array.from({ length: LANES }, () => this.#lane())])
  }

  async #readAhead(): Promise<void> {
    const client = await this.#connect()
    for (let shard = 0; shard < SHARDS; shard++) {
      let after: Date | undefined = new Date(0)
      while (after) {
        while (this.#due.length > READ_AHEAD) await pause(5)
        const rows: Item[] = await ask(client, 'due', READ_DUE, [shard, this.#now, after])
        this.#due.push(...rows)
        after = rows.length < CHUNK ? undefined : rows.at(-1)?.[2]
      }
    }
    this.#allRead = true
    await client.end()
  }

  async #lane(): Promise<void> {
    const client = await this.#connect()
    const direct = this.#floor === 'direct'
    for (;;) {
      const items = this.#due.splice(0, BATCH)
      if (items.length === 0 && (direct ? this.#allRead : this.#finished >= this.#runs)) break
      const promoted = items.length > 0 ? await this.#promote(client, items) : []
      const leased = direct ? promoted : await ask<Item>(client, 'claim', CLAIM, [BATCH, this.#leaseUntil])
      if (leased.length > 0) await this.#finish(client, leased)
      else await pause(2)
    }
    await client.end()
  }

  /** Answers only what the database says it promoted, never what was sent. */
  async #promote(client: pg.Client, items: readonly Item[]): Promise<Item[]> {
    const direct = this.#floor === 'direct'
    const first = this.#nextTurn
    this.#nextTurn += items.length
    const rows = await ask<[string]>(client, 'promote', PROMOTE, [
      items.map(([shard]) => shard),
      items.map(([, jobId]) => jobId),
      items.map(([, , dueAt]) => dueAt.toISOString()),
      items.map(([, , dueAt]) => new Date(dueAt.getTime() + DAY_MS).toISOString()),
      items.map((_, index) => first + index),
      direct ? 1 : 0,
      direct ? 1 : 0,
      direct ? this.#leaseUntil : null,
      direct ? HOLDER : null,
    ])
    return rows.map(([turn]) => items[Number(turn) - first]).filter((item) => item !== undefined)
  }

  async #finish(client: pg.Client, leased: readonly Item[]): Promise<void> {
    const at = new Date().toISOString()
    await ask(client, 'finish', FINISH, [
      leased.map(([shard]) => shard),
      leased.map(([, jobId]) => jobId),
      leased.map(([, , nominalAt]) => nominalAt.toISOString()),
      leased.map(() => at),
      leased.map(() => 1),
      leased.map(() => 1),
      leased.map(() => HOLDER),
    ])
    this.#finished += leased.length
  }

  async #connect(): Promise<pg.Client> {
    const client = await connect(this.#databaseUrl)
    // Without these a stale estimate turns the joins into hash joins over the whole table.
    await client.query(
      'set search_path = floor; set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off',
    )
    return client
  }
}

async function ask<Row extends unknown[]>(
  client: pg.Client,
  name: string,
  text: string,
  values: unknown[],
): Promise<Row[]> {
  const { rows } = await client.query<Row>({ name, text, values, rowMode: 'array' })
  return rows
}

function pause(ms: number): Promise<void> {
  return new Promise((wake) => setTimeout(wake, ms))
}
