import { clockChangesOfEventBridge } from './clock-changes.ts'
import { isRecord, NotTaken, type Plan, type Read, type ReadOptions, readEntry, workDiffers } from './entry.ts'
import { type EventBridgeTime, readExpression } from './eventbridge-expression.ts'
import { readTarget, type TargetPlan } from './eventbridge-target.ts'
import { hasClockChanges, readZone } from './zone.ts'

type Fields = Record<string, unknown>

export interface EventBridgeOptions extends ReadOptions {
  now: number
}

/** Schedules of EventBridge Scheduler and rules of EventBridge, as `aws` prints them. */
export function readEventBridge(text: string, options: EventBridgeOptions): Read {
  const items = itemsOf(text)
  const entries = items.map((item, index) =>
    readEntry(`entry ${index + 1}`, titleOf(item), () => planOf(item, options)),
  )
  return { entries, passedOver: [] }
}

function itemsOf(text: string): unknown[] {
  const value = parsed(text)
  if (Array.isArray(value)) return value
  if (!isRecord(value))
    throw new NotTaken('it must hold a schedule, a list of them, {"Schedules": […]} or {"Rules": […]}')
  const list = value.Schedules ?? value.Rules
  return Array.isArray(list) ? list : [value]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new NotTaken(`it is not JSON: ${(error as Error).message}`)
  }
}

function planOf(item: unknown, { queue, timezone, now }: EventBridgeOptions): Plan {
  if (!isRecord(item)) throw new NotTaken('it is no schedule')
  const { Name, ScheduleExpression } = item
  if (typeof Name !== 'string') throw new NotTaken('it has no Name')
  if (typeof ScheduleExpression !== 'string') throw new NotTaken(withoutExpression(item))
  const target = isRecord(item.Target) ? readTarget(item.Target) : targetOfRule(Name)
  const own = item.ScheduleExpressionTimezone
  // Rules have no target in the list, and go by UTC.
  const usualZone = item.Target === undefined ? 'UTC' : (timezone ?? 'UTC')
  const zone = readZone(typeof own === 'string' ? own : usualZone)
  const time = readExpression(ScheduleExpression, zone)
  const isSuspended = item.State === 'DISABLED'
  const { job, differences } =
    time.kind === 'at' ? onceAt(time, { isSuspended, now }) : recurring(time, { item, zone, now })
  const spread = spreadOf(item.FlexibleTimeWindow)
  return {
    kind: 'job',
    name: nameOf(item, Name),
    isSuspended,
    job: {
      ...job,
      ...(spread === undefined || time.kind === 'at' ? {} : { jitter: spread }),
      queue,
      ...target.fields,
      labels: { 'imported-from': 'eventbridge' },
    },
    differences: [
      workDiffers('calls of targets', queue),
      ...target.differences,
      ...differences,
      ...(spread === undefined ? [] : [time.kind === 'at' ? ONCE_ON_TIME : SPREAD_DIFFERS]),
      ...(item.KmsKeyArn === undefined ? [] : ['KmsKeyArn is not taken over']),
    ],
  }
}

interface When {
  job: Fields
  differences: string[]
}

function onceAt(
  { runAt, notes }: Extract<EventBridgeTime, { kind: 'at' }>,
  { isSuspended, now }: { isSuspended: boolean; now: number },
): When {
  if (runAt.getTime() <= now) throw new NotTaken(`it was for ${runAt.toISOString()}, which is over`)
  if (isSuspended) throw new NotTaken('it is disabled, and a job that runs once cannot be paused')
  return { job: { runAt: runAt.toISOString() }, differences: notes }
}

function recurring(
  time: Exclude<EventBridgeTime, { kind: 'at' }>,
  { item, zone, now }: { item: Fields; zone: string; now: number },
): When {
  const policies = { overlap: 'allow', catchUp: { policy: 'none' } }
  if (time.kind === 'rate')
    return {
      job: { every: time.every, ...boundsOf(item, {}, now), ...policies },
      differences: item.StartDate === undefined ? [MISSED_DIFFERS, RATE_DIFFERS] : [MISSED_DIFFERS],
    }
  return {
    job: { cron: time.cron, timezone: zone, ...boundsOf(item, time.years, now), ...policies },
    differences: [
      MISSED_DIFFERS,
      ...time.notes,
      ...(hasClockChanges(zone) ? [clockChangesOfEventBridge(time.cron)] : []),
    ],
  }
}

const targetOfRule = (name: string): TargetPlan => ({ fields: { payload: { rule: name } }, differences: [NO_TARGETS] })

const NO_TARGETS =
  'the targets of a rule are not in this file (aws events list-targets-by-rule shows them): the payload only names the rule'
const SPREAD_DIFFERS =
  'FlexibleTimeWindow becomes jitter: one offset per job that stays the same, and never past the next time'
const ONCE_ON_TIME = 'FlexibleTimeWindow is not taken over: a job that runs once runs on time'
const RATE_DIFFERS = 'a rate counts from the import, not from when the schedule was made'
const MISSED_DIFFERS = 'a time missed while nothing ran is recorded as skipped, unless it is less than a minute late'

/** The list shows schedules without their times. */
function withoutExpression(item: Fields): string {
  if (item.EventPattern !== undefined) return 'it is a rule for events, not for times'
  return 'it has no ScheduleExpression: `aws scheduler list-schedules` leaves it out, `aws scheduler get-schedule` shows it'
}

/** Minutes of a flexible window, as a duration. */
function spreadOf(window: unknown): string | undefined {
  if (!isRecord(window) || window.Mode !== 'FLEXIBLE') return undefined
  return `PT${Number(window.MaximumWindowInMinutes)}M`
}

/** The narrower of the schedule's own dates and the years of its cron. */
function boundsOf(item: Fields, years: { startAt?: Date; endAt?: Date }, now: number): Fields {
  const starts = [dateOf(item, 'StartDate'), years.startAt].filter((date) => date !== undefined)
  const ends = [dateOf(item, 'EndDate'), years.endAt].filter((date) => date !== undefined)
  const startAt = starts.sort((a, b) => b.getTime() - a.getTime())[0]
  const endAt = ends.sort((a, b) => a.getTime() - b.getTime())[0]
  if (endAt !== undefined && endAt.getTime() <= now) throw new NotTaken(`it ended at ${endAt.toISOString()}`)
  return {
    ...(startAt === undefined ? {} : { startAt: startAt.toISOString() }),
    ...(endAt === undefined ? {} : { endAt: endAt.toISOString() }),
  }
}

/** `aws` writes instants as text or, on request, as seconds. */
function dateOf(item: Fields, field: string): Date | undefined {
  const value = item[field]
  if (value === undefined || value === null) return undefined
  const date = new Date(typeof value === 'number' ? value * 1_000 : String(value))
  if (Number.isNaN(date.getTime())) throw new NotTaken(`its ${field} is ${JSON.stringify(value)}, which is no instant`)
  return date
}

function nameOf({ GroupName, EventBusName }: Fields, name: string): string {
  const group = GroupName ?? EventBusName
  return group === undefined || group === 'default' ? name : `${group}/${name}`
}

function titleOf(item: unknown): string {
  if (!isRecord(item)) return Array.isArray(item) ? 'a list' : String(item)
  return [item.Name, item.ScheduleExpression].filter((part) => typeof part === 'string').join(' ')
}
