import { checkedOptions, invalidArgument } from './call-options.ts'
import { namedKey, pauseKey, resumeKey } from './concurrency/pause-key.sql.ts'
import { BelfryError } from './errors.ts'
import { Complaints, readText } from './input/read-fields.ts'
import { withoutPauser, withPauser } from './intake/paused-by.ts'
import { readReason } from './jobs.ts'
import { OfScope } from './scope.ts'
import { MAX_TOLD, PAUSE_KIND } from './shards/paused.ts'
import type { Transaction } from './store/database.ts'
import type { TenantScope } from './tenant-scope.ts'
import {
  countAllPauses,
  countPauses,
  endPause,
  listPausedQueues,
  listPauses,
  lockNamedPause,
  lockPause,
  type PauseRow,
  pauseHasEnded,
  putPause,
  setPauser,
} from './tenants/pause-rows.sql.ts'

/** Exactly one of tenant, key and origin. */
export interface PauseInput {
  /** All that the tenant has. */
  tenant?: true
  /** Runs that share this key of `concurrency` or `rateLimit`. */
  key?: string
  /** Calls to this scheme, host and port. */
  origin?: string
  reason?: string
}

interface PauseView {
  /** Null for a queue, which is resumed by its name. */
  id: string | null
  kind: 'tenant' | 'key' | 'origin' | 'queue'
  /** Of what is paused; null for a tenant. */
  name: string | null
  pausedAt: Date
  /** Who paused it; null: nobody wrote it down then. */
  pausedBy: string | null
  reason: string | null
}

export type { PauseView }

const MAX_KEY = 256
const MAX_ORIGIN = 300
/** Of one tenant; the pulse of every node carries all of them. */
const MAX_PAUSES = 1_000
const KINDS = ['tenant', 'key', 'origin'] as const

/** What a tenant has paused besides jobs: itself, keys, origins and queues. */
export class TenantPauses extends OfScope<TenantScope> {
  /**
   * Nothing of it is started until the pause ends; what has begun goes on, and times still come: their runs wait. Other nodes know
   * within a second. What is paused already stays as it is, and is the answer; the pause of an operator and the tenant's own are
   * one, of both.
   */
  async create(input: PauseInput): Promise<{ pause: PauseView; created: boolean }> {
    const { caller, engine } = this.scope
    const { clock, db } = engine
    const what = readWhat(input)
    const at = clock.now()
    const id = engine.newId(at)
    const pause: PauseRow = { ...what, id, pausedAt: at, pausedBy: caller.actor, reason: readReason(reasonOf(input)) }
    const made = await db.callers.transactionOn([`pause ${caller.tenantId} ${what.kind} ${what.name}`], async (tx) => {
      if ((await countPauses(tx, caller.tenantId, MAX_PAUSES)) === MAX_PAUSES)
        throw new BelfryError('quota_exceeded', `a tenant may have ${MAX_PAUSES} pauses at a time`)
      if (what.kind !== PAUSE_KIND.key && (await countAllPauses(tx, PAUSE_KIND.key, MAX_TOLD)) === MAX_TOLD)
        throw new BelfryError('quota_exceeded', `an installation may have ${MAX_TOLD} pauses at a time`)
      if (await putPause(tx, caller.tenantId, pause)) {
        await this.#begin(tx, pause)
        return { pause, created: true }
      }
      const stands = await lockNamedPause(tx, caller.tenantId, what)
      if (stands === null) return null
      const pausedBy = withPauser(stands.pausedBy, caller.actor)
      if (pausedBy === stands.pausedBy) return { pause: stands, created: false }
      const both = { ...stands, pausedBy, reason: pause.reason ?? stands.reason }
      await setPauser(tx, both)
      await this.#begin(tx, both)
      return { pause: both, created: false }
    })
    // It ended while we looked.
    if (made === null) return this.create(input)
    if (made.created) await engine.refresh()
    return { pause: viewOf(made.pause), created: made.created }
  }

  async #begin(tx: Transaction, pause: PauseRow): Promise<void> {
    const { kind, name, pausedAt: at, pausedBy: by, reason } = pause
    const { caller, engine } = this.scope
    if (kind === PAUSE_KIND.key) await pauseKey(tx, namedKey(caller.tenantId, name, engine.shards), { at, by, reason })
    await this.#record(tx, pause, 'pause')
  }

  /**
   * Runs that were sent away come back one behind the other. Ending it again is harmless. What an operator has paused is for an
   * operator to end, and stays paused then if the tenant has paused it too.
   */
  async end(id: string): Promise<void> {
    const { caller, engine } = this.scope
    const { db, clock, shards, wakeups } = engine
    const { tenantId, actor } = caller
    const isId = UUID.test(id)
    const ended =
      isId &&
      (await db.callers.transactionOn([`pause ${id}`], async (tx) => {
        const pause = await lockPause(tx, tenantId, id)
        if (pause === null) return null
        const pausedBy = withoutPauser(inWords(pause), pause.pausedBy, actor)
        if (pausedBy !== null) await setPauser(tx, { ...pause, pausedBy })
        else {
          await endPause(tx, id, clock.now())
          if (pause.kind === PAUSE_KIND.key) await resumeKey(tx, namedKey(tenantId, pause.name, shards))
        }
        await this.#record(tx, pause, 'resume')
        return pause
      }))
    if (!ended) {
      if (isId && (await pauseHasEnded(db, tenantId, id))) return
      throw new BelfryError('not_found', 'there is no such pause')
    }
    if (ended.kind === PAUSE_KIND.key) {
      const { shard, key } = namedKey(tenantId, ended.name, shards)
      wakeups.keyChanged(shard, key)
    }
    await engine.refresh()
  }

  /** All of them; paused jobs are among the jobs, by their status. */
  async list(): Promise<PauseView[]> {
    const { fresh, caller } = this.scope
    const pauses = await listPauses(fresh, caller.tenantId, MAX_PAUSES)
    const queues = await listPausedQueues(fresh, caller.tenantId, MAX_PAUSES)
    const ofQueues = queues.map(({ pausedAt, ...queue }) => ({
      ...{ id: null, kind: 'queue' as const, pausedAt: new Date(pausedAt) },
      ...queue,
    }))
    return [...pauses.map(viewOf), ...ofQueues]
  }

  #record(tx: Transaction, pause: PauseRow, action: 'pause' | 'resume'): Promise<void> {
    const { id, kind, name, reason } = pause
    const subjectId = name === '' ? (KINDS[kind] as string) : `${KINDS[kind]}/${name}`
    const shown = { id, reason }
    const change = action === 'pause' ? { after: shown } : { before: shown }
    return this.scope.record(tx, { subject: 'pause', subjectId, action, ...change })
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const reasonOf = ({ reason }: PauseInput): { reason?: string } => (reason === undefined ? {} : { reason })

const inWords = ({ kind, name }: PauseRow): string =>
  kind === PAUSE_KIND.tenant ? 'the tenant' : `the ${KINDS[kind]} ${name}`

const viewOf = ({ id, kind, name, pausedAt, pausedBy, reason }: PauseRow): PauseView => ({
  id,
  kind: KINDS[kind] ?? 'tenant',
  name: name === '' ? null : name,
  pausedAt: new Date(pausedAt),
  pausedBy,
  reason,
})

function readWhat(input: PauseInput): { kind: number; name: string } {
  const { tenant, key, origin } = checkedOptions(input, ['tenant', 'key', 'origin', 'reason'])
  const given = KINDS.filter((kind) => input[kind] !== undefined)
  if (given.length !== 1) throw invalidArgument('pause', 'give exactly one of tenant, key and origin')
  if (tenant !== undefined) {
    if (tenant !== true) throw invalidArgument('tenant', 'must be true: whose tenant is said by the key')
    return { kind: PAUSE_KIND.tenant, name: '' }
  }
  const complaints = new Complaints()
  const path = key === undefined ? 'origin' : 'key'
  const name = readText(complaints, path, key ?? origin, key === undefined ? MAX_ORIGIN : MAX_KEY)
  if (name === undefined) throw complaints.error('invalid_argument')
  return key === undefined ? { kind: PAUSE_KIND.origin, name: readOrigin(name) } : { kind: PAUSE_KIND.key, name }
}

function readOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw invalidArgument('origin', 'must be an origin such as https://api.example.com')
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '')
    throw invalidArgument('origin', 'must be scheme, host and port alone', url.origin)
  return url.origin
}
