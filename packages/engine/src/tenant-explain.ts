import { checkedOptions, invalidArgument } from './call-options.ts'
import { explainAt, explainNow, explainRange } from './lookup/explain-job.ts'
import type { Explanation } from './lookup/explanation.ts'
import { readRange, type When } from './lookup/filter.ts'
import type { Page } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** Half-open; a page of it at a time. */
export interface ExplainRange {
  from: When
  to: When
  limit?: number
  cursor?: string
}

function requestFor({ fresh, caller, engine }: TenantScope) {
  const { tenantId } = caller
  return {
    db: fresh,
    engineDb: engine.db,
    tenantId,
    now: engine.clock.now(),
    clock: engine.clock,
    historyDays: engine.historyDays,
    calendarsOf: (names: readonly string[]) => engine.calendars.read(tenantId, names),
  }
}

/** Why the job ran, did not run or will run at what a person means by an instant; without one, now. */
export async function explainOne(scope: TenantScope, jobId: string, at?: When): Promise<Explanation> {
  const request = requestFor(scope)
  const found =
    at === undefined
      ? await explainNow(request, jobId)
      : await explainAt(request, jobId, readRange({ from: at }, { from: 'at', to: 'at' }).from)
  if (found === null) throw noSuch('job', jobId)
  return found
}

/** The same for every nominal time in a range, oldest first. */
export async function explainMany(
  scope: TenantScope,
  jobId: string,
  options: ExplainRange,
): Promise<Page<Explanation>> {
  const { from, to, ...page } = checkedOptions(options, ['from', 'to', 'limit', 'cursor'])
  if (from === undefined || to === undefined)
    throw invalidArgument(from === undefined ? 'from' : 'to', 'is missing: a range has from and to')
  const range = readRange({ from, to })
  if (range.to <= range.from) throw invalidArgument('to', 'must be later than from')
  const found = await explainRange(requestFor(scope), jobId, range, page)
  if (found === null) throw noSuch('job', jobId)
  return found
}
