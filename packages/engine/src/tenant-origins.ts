import { listOriginLimits, readOriginLimit } from './concurrency/origin-limits.sql.ts'
import {
  isLimited,
  type LimitsInput,
  type LimitsView,
  limitsView,
  NO_LIMITS,
  readLimits,
} from './concurrency/shared-limit-fields.ts'
import { limitRow, openLimit, originLimitRef, putLimit, removeLimit } from './concurrency/shared-limits.sql.ts'
import { Complaints } from './input/read-fields.ts'
import { OfScope } from './scope.ts'
import { limitOf, type Page, type PageRequest, pageOf, readCursor } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** An origin that a tenant has limited. */
export interface OriginView extends LimitsView {
  /** Scheme, host and port, without a port that is the scheme's own. */
  origin: string
}

const MAX_ORIGIN = 300
const HEX = /^[0-9a-f]*$/

/**
 * The origins whose calls a tenant has limited, for all its jobs and on all nodes together. A limit counts calls that begin after
 * it is known: at once on the node that was asked, within a second on others.
 */
export class TenantOrigins extends OfScope<TenantScope> {
  /** By origin, a page at a time. */
  async list(request: PageRequest = {}): Promise<Page<OriginView>> {
    const { fresh, caller } = this.scope
    const limit = limitOf(request)
    const [after = ''] = readCursor(request, [HEX]) ?? []
    const from = { after: Buffer.from(after, 'hex').toString(), limit: limit + 1 }
    const found = await listOriginLimits(fresh, caller.tenantId, from)
    const views = found.map(({ origin, ...limits }) => ({ origin, ...limitsView(limits) }))
    return pageOf(views, limit, ({ origin }) => [Buffer.from(origin).toString('hex')])
  }

  async get(text: string): Promise<OriginView> {
    const { fresh, caller } = this.scope
    const origin = readOrigin(text)
    const found = await readOriginLimit(fresh, caller.tenantId, origin)
    if (found === null) throw noSuch('limit of', origin)
    return { origin, ...limitsView(found) }
  }

  /** What is left out is not limited. */
  async put(text: string, input: LimitsInput): Promise<{ created: boolean }> {
    const { engine, caller } = this.scope
    const { db, clock, shards, http } = engine
    const origin = readOrigin(text)
    const complaints = new Complaints()
    const limits = readLimits(complaints, input, NO_LIMITS)
    if (limits && !isLimited(limits)) complaints.add('maxRunning', 'is missing: give maxRunning, rateLimit or both')
    if (limits === undefined || complaints.list.length > 0) throw complaints.error('invalid_argument')
    const { tenantId } = caller
    const ref = originLimitRef(tenantId, origin, shards)
    const created = await db.callers.transactionOn([limitRow(ref)], async (tx) => {
      const before = await readOriginLimit(tx, tenantId, origin)
      const isMade = await putLimit(tx, ref, { ...limits, tenantId, name: origin, usedAt: clock.now() })
      // The line of those who wait for the rate begins anew.
      if (!isMade) await openLimit(tx, ref, clock.now())
      const change = { before: before ? limitsView(before) : undefined, after: limitsView(limits) }
      await this.scope.record(tx, { subject: 'origin', subjectId: origin, action: 'limit', ...change })
      return isMade
    })
    await (created ? http.limits.read() : http.limits.changed(tenantId, origin, limits))
    return { created }
  }

  async delete(text: string): Promise<void> {
    const { engine, caller } = this.scope
    const { db, shards, http } = engine
    const origin = readOrigin(text)
    const ref = originLimitRef(caller.tenantId, origin, shards)
    const isGone = await db.callers.transactionOn([limitRow(ref)], async (tx) => {
      const before = await readOriginLimit(tx, caller.tenantId, origin)
      if (before === null || !(await removeLimit(tx, ref))) return false
      const change = { subject: 'origin', subjectId: origin, action: 'delete', before: limitsView(before) } as const
      await this.scope.record(tx, change)
      return true
    })
    if (!isGone) throw noSuch('limit of', origin)
    await http.limits.changed(caller.tenantId, origin, null)
  }
}

/** As calls have it: no path, no port that is the scheme's own. */
function readOrigin(text: unknown): string {
  const complaints = new Complaints()
  const parsed = typeof text === 'string' && text.length <= MAX_ORIGIN && URL.canParse(text) ? new URL(text) : null
  const isOrigin =
    parsed !== null &&
    /^https?:$/.test(parsed.protocol) &&
    parsed.pathname === '/' &&
    `${parsed.search}${parsed.hash}${parsed.username}${parsed.password}` === ''
  if (isOrigin) return parsed.origin
  complaints.add('origin', 'must be scheme, host and port of an HTTP target, such as https://api.example.com')
  throw complaints.error('invalid_argument')
}
