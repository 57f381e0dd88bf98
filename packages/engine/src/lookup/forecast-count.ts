import type { Breather } from '../runtime/breather.ts'
import type { Instant } from '../runtime/clock.ts'
import { MINUTE_MS } from '../schedule/duration.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Origins, Shares } from './forecast-origins.sql.ts'
import type { GroupedTimers, TimerGroup } from './forecast-timers.sql.ts'

/** Different schedules that are counted out. The others are as the smallest of these. */
const MAX_SCHEDULES = 5_000
/** Questions to the calendar for one forecast, some microseconds each. */
const MAX_STEPS = 1_000_000
const MAX_SHOWN = 100
const MAX_SERIES = 10
const MAX_BUSIEST = 10

export interface ForecastMinute {
  at: Date
  runs: number
  /** Those of jobs without jitter: they are due at their very second. */
  withoutJitter: number
}

export interface ForecastPart {
  name: string
  total: number
  busiest: { at: Date; runs: number } | null
  /** From the first minute on; of the ten busiest only. */
  perMinute: number[] | null
}

export interface Counted {
  total: number
  perMinute: number[]
  busiest: ForecastMinute[]
  queues: ForecastPart[]
  origins: ForecastPart[]
  /** False: some numbers are estimates, from a part that was counted. */
  isComplete: boolean
  /** The same of the origins, which take a look into each job. */
  areOriginsComplete: boolean
}

/** The minutes in which a schedule fires, in order, and how often. */
type Fires = readonly (readonly [minute: number, count: number])[]

interface Weighed {
  group: TimerGroup
  /** How many timers it stands for. */
  weight: number
  fires: Fires
  shares: Shares
}

export interface CountRequest {
  /** Whole minutes since 1970, half-open. */
  from: number
  to: number
  scheduleOf(group: TimerGroup): Schedule | null
  origins: Origins
  breather: Breather
}

/** Expected runs per minute. Each schedule is counted once, however many jobs have it. */
export async function countForecast(timers: GroupedTimers, request: CountRequest): Promise<Counted> {
  const { from, to, scheduleOf, origins, breather } = request
  const sizes = new Map<string, number>()
  for (const { scheduleId, timers: size } of timers.groups)
    if (scheduleId !== null) sizes.set(scheduleId, (sizes.get(scheduleId) ?? 0) + size)
  const largest = [...sizes].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_SCHEDULES)
  const wanted = new Map(largest.map(([id], place) => [id, place]))
  const firesOf = new Map<string, Fires>()
  const byId = new Map(timers.groups.flatMap((group) => (group.scheduleId === null ? [] : [[group.scheduleId, group]])))
  const budget = { steps: MAX_STEPS }
  for (const id of wanted.keys()) {
    const schedule = budget.steps > 0 ? scheduleOf(byId.get(id) as TimerGroup) : null
    const fires = schedule && firesIn(schedule, from, to, budget)
    if (fires && budget.steps > 0) firesOf.set(id, fires)
    await breather.breathe()
  }
  const { weighed, isExact } = weigh(timers, firesOf, { from, to, origins })
  const isComplete = isExact && timers.isComplete && budget.steps > 0
  return { ...summed(weighed, from, to), isComplete, areOriginsComplete: isComplete && origins.isComplete }
}

function firesIn(schedule: Schedule, from: number, to: number, budget: { steps: number }): Fires {
  const fires: [number, number][] = []
  const end = to * MINUTE_MS
  const ask = (after: Instant) => {
    budget.steps--
    return schedule.next(after)
  }
  for (let at = ask(from * MINUTE_MS - 1); at !== null && at < end && budget.steps > 0; ) {
    const minute = Math.floor(at / MINUTE_MS)
    const minuteEnd = (minute + 1) * MINUTE_MS
    const next = ask(at)
    if (next === null || next >= minuteEnd) {
      fires.push([minute, 1])
      at = next
      continue
    }
    fires.push([minute, schedule.count(at - 1, minuteEnd - 1, MINUTE_MS)])
    at = ask(minuteEnd - 1)
  }
  return fires
}

/**
 * What each group stands for. Groups that the database left out are as the smallest that it named: the largest come first, and
 * among equals chance decided. Schedules that were not counted out are as those that were.
 */
function weigh(
  { groups, timers, coverage }: GroupedTimers,
  firesOf: ReadonlyMap<string, Fires>,
  { from, to, origins }: Pick<CountRequest, 'from' | 'to' | 'origins'>,
): { weighed: Weighed[]; isExact: boolean } {
  const sum = (some: readonly TimerGroup[]) => some.reduce((all, group) => all + group.timers, 0)
  const named = sum(groups)
  const least = groups.reduce((size, group) => Math.min(size, group.timers), Number.POSITIVE_INFINITY)
  const forSmallest = 1 + (timers - named) / Math.max(1, sum(groups.filter((group) => group.timers === least)))
  const recurring = groups.filter(({ scheduleId }) => scheduleId !== null)
  const counted = recurring.filter(({ scheduleId }) => firesOf.has(scheduleId as string))
  const forCounted = sum(recurring) / Math.max(1, sum(counted))
  const weightOf = (group: TimerGroup) => (group.timers * (group.timers === least ? forSmallest : 1)) / coverage
  const weighed = [
    ...counted.map((group) => ({
      group,
      weight: weightOf(group) * forCounted,
      fires: cut(firesOf.get(group.scheduleId as string) ?? [], group),
      shares: origins.of(group),
    })),
    ...groups
      .filter(({ scheduleId }) => scheduleId === null)
      .map((group) => ({ group, weight: weightOf(group), fires: onceIn(group, from, to), shares: origins.of(group) })),
  ]
  return { weighed, isExact: named === timers && counted.length === recurring.length }
}

const onceIn = ({ minute }: TimerGroup, from: number, to: number): Fires =>
  minute === null || minute < from || minute >= to ? [] : [[minute, 1]]

/** No more than the runs that a job has left. */
function cut(fires: Fires, { remainingRuns }: TimerGroup): Fires {
  if (remainingRuns === null) return fires
  let left = remainingRuns
  return fires.flatMap(([minute, count]) => {
    const runs = Math.min(left, count)
    left -= runs
    return runs > 0 ? [[minute, runs] as const] : []
  })
}

function summed(
  weighed: readonly Weighed[],
  from: number,
  to: number,
): Omit<Counted, 'isComplete' | 'areOriginsComplete'> {
  const all = new Float64Array(to - from)
  const sharp = new Float64Array(to - from)
  const queues = new Map<string, number>()
  const origins = new Map<string, number>()
  const add = (totals: Map<string, number>, name: string, runs: number) =>
    totals.set(name, (totals.get(name) ?? 0) + runs)
  for (const one of weighed) {
    const runs = addTo(all, from, one, 1)
    if (!one.group.hasJitter) addTo(sharp, from, one, 1)
    if (runs === 0) continue
    add(queues, one.group.queue, runs)
    for (const [origin, share] of one.shares) add(origins, origin, runs * share)
  }
  const at = (minute: number) => new Date((from + minute) * MINUTE_MS)
  const busiest = [...all.keys()].sort((a, b) => (all[b] as number) - (all[a] as number)).slice(0, MAX_BUSIEST)
  return {
    total: Math.round(all.reduce((sum, runs) => sum + runs, 0)),
    perMinute: Array.from(all, Math.round),
    busiest: busiest
      .map((minute) => ({
        at: at(minute),
        runs: Math.round(all[minute] as number),
        withoutJitter: Math.round(sharp[minute] as number),
      }))
      .filter(({ runs }) => runs > 0),
    queues: partsOf(weighed, queues, ({ group }) => [[group.queue, 1]], from, to),
    origins: partsOf(weighed, origins, ({ shares }) => shares, from, to),
  }
}

/** A jittered run is due some minutes later. */
function addTo(minutes: Float64Array, from: number, { group, weight, fires }: Weighed, share: number): number {
  let runs = 0
  for (const [minute, count] of fires) {
    const place = minute - from + group.jitterMinutes
    if (place >= minutes.length) continue
    minutes[place] = (minutes[place] as number) + weight * share * count
    runs += weight * share * count
  }
  return runs
}

function partsOf(
  weighed: readonly Weighed[],
  totals: ReadonlyMap<string, number>,
  sharesOf: (one: Weighed) => Shares,
  from: number,
  to: number,
): ForecastPart[] {
  const largest = [...totals].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_SHOWN)
  const series = new Map(largest.slice(0, MAX_SERIES).map(([name]) => [name, new Float64Array(to - from)]))
  for (const one of weighed) {
    for (const [name, share] of sharesOf(one)) {
      const minutes = series.get(name)
      if (minutes) addTo(minutes, from, one, share)
    }
  }
  return largest.map(([name, total]) => {
    const minutes = series.get(name)
    if (minutes === undefined) return { name, total: Math.round(total), busiest: null, perMinute: null }
    const top = minutes.reduce((best, runs, i) => (runs > (minutes[best] as number) ? i : best), 0)
    const busiest = { at: new Date((from + top) * MINUTE_MS), runs: Math.round(minutes[top] as number) }
    return { name, total: Math.round(total), busiest, perMinute: Array.from(minutes, Math.round) }
  })
}
