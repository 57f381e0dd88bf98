import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { GroupedTimers, TimerGroup } from './forecast-timers.sql.ts'

export const MINUTE_MS = 60_000
/** Different schedules that are counted out. The others are as the smallest of these. */
const MAX_SCHEDULES = 5_000
/** Questions to the calendar for one forecast, about 5 µs each. */
const MAX_STEPS = 400_000
/** After so many, everybody else gets a turn. */
const STEPS_PER_TURN = 2_000
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
}

/** The minutes in which a schedule fires, in order, and how often. */
type Fires = readonly (readonly [minute: number, count: number])[]

interface Weighed {
  group: TimerGroup
  /** How many timers it stands for. */
  weight: number
  fires: Fires
}

export interface CountRequest {
  /** Whole minutes since 1970, half-open. */
  from: number
  to: number
  scheduleOf(group: TimerGroup): Schedule | null
  /** Lets others have their turn. */
  yieldTurn(): Promise<void>
}

/** Expected runs per minute. Each schedule is counted once, however many jobs have it. */
export async function countForecast(timers: GroupedTimers, request: CountRequest): Promise<Counted> {
  const { from, to, scheduleOf, yieldTurn } = request
  const sizes = new Map<string, number>()
  for (const { scheduleId, timers: size } of timers.groups)
    if (scheduleId !== null) sizes.set(scheduleId, (sizes.get(scheduleId) ?? 0) + size)
  const largest = [...sizes].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_SCHEDULES)
  const wanted = new Map(largest.map(([id], place) => [id, place]))
  const firesOf = new Map<string, Fires>()
  const byId = new Map(timers.groups.flatMap((group) => (group.scheduleId === null ? [] : [[group.scheduleId, group]])))
  const budget = { steps: MAX_STEPS, untilTurn: STEPS_PER_TURN }
  for (const id of wanted.keys()) {
    const schedule = budget.steps > 0 ? scheduleOf(byId.get(id) as TimerGroup) : null
    if (schedule) firesOf.set(id, firesIn(schedule, from, to, budget))
    if (budget.untilTurn > 0) continue
    budget.untilTurn = STEPS_PER_TURN
    await yieldTurn()
  }
  const { weighed, isExact } = weigh(timers, firesOf, { from, to })
  return { ...summed(weighed, from, to), isComplete: isExact && timers.isComplete }
}

function firesIn(schedule: Schedule, from: number, to: number, budget: { steps: number; untilTurn: number }): Fires {
  const fires: [number, number][] = []
  const end = to * MINUTE_MS
  const ask = (after: Instant) => {
    budget.steps--
    budget.untilTurn--
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
 * What each group stands for. Where only a part was looked at, whatever is left out is as the smallest of what is in: the
 * largest come first, and among equals chance decided.
 */
function weigh(
  { groups, timers, coverage }: GroupedTimers,
  firesOf: ReadonlyMap<string, Fires>,
  { from, to }: { from: number; to: number },
): { weighed: Weighed[]; isExact: boolean } {
  const counted = groups.filter(({ scheduleId }) => scheduleId === null || firesOf.has(scheduleId))
  const known = counted.reduce((sum, group) => sum + group.timers, 0)
  const left = timers - known
  const least = counted.reduce((size, group) => Math.min(size, group.timers), Number.POSITIVE_INFINITY)
  const smallest = counted.reduce((sum, group) => (group.timers === least ? sum + group.timers : sum), 0)
  const weighed = counted.map((group) => {
    const weight = group.timers * (left > 0 && group.timers === least ? 1 + left / smallest : 1)
    const fires = group.scheduleId === null ? onceIn(group, from, to) : cut(firesOf.get(group.scheduleId) ?? [], group)
    return { group, weight: weight / coverage, fires }
  })
  return { weighed, isExact: left <= 0 }
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

function summed(weighed: readonly Weighed[], from: number, to: number): Omit<Counted, 'isComplete'> {
  const all = new Float64Array(to - from)
  const sharp = new Float64Array(to - from)
  const queues = new Map<string, number>()
  const origins = new Map<string, number>()
  for (const { group, weight, fires } of weighed) {
    const runs = addTo(all, from, { group, weight, fires })
    if (!group.hasJitter) addTo(sharp, from, { group, weight, fires })
    if (runs === 0) continue
    queues.set(group.queue, (queues.get(group.queue) ?? 0) + runs)
    if (group.origin !== null) origins.set(group.origin, (origins.get(group.origin) ?? 0) + runs)
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
    queues: partsOf(weighed, queues, ({ queue }) => queue, from, to),
    origins: partsOf(weighed, origins, ({ origin }) => origin, from, to),
  }
}

/** A jittered run is due some minutes later. */
function addTo(minutes: Float64Array, from: number, { group, weight, fires }: Weighed): number {
  let runs = 0
  for (const [minute, count] of fires) {
    const place = minute - from + group.jitterMinutes
    if (place >= minutes.length) continue
    minutes[place] = (minutes[place] as number) + weight * count
    runs += weight * count
  }
  return runs
}

function partsOf(
  weighed: readonly Weighed[],
  totals: ReadonlyMap<string, number>,
  nameOf: (group: TimerGroup) => string | null,
  from: number,
  to: number,
): ForecastPart[] {
  const largest = [...totals].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_SHOWN)
  const series = new Map(largest.slice(0, MAX_SERIES).map(([name]) => [name, new Float64Array(to - from)]))
  for (const one of weighed) {
    const minutes = series.get(nameOf(one.group) ?? '')
    if (minutes) addTo(minutes, from, one)
  }
  return largest.map(([name, total]) => {
    const minutes = series.get(name)
    if (minutes === undefined) return { name, total: Math.round(total), busiest: null, perMinute: null }
    const top = minutes.reduce((best, runs, i) => (runs > (minutes[best] as number) ? i : best), 0)
    const busiest = { at: new Date((from + top) * MINUTE_MS), runs: Math.round(minutes[top] as number) }
    return { name, total: Math.round(total), busiest, perMinute: Array.from(minutes, Math.round) }
  })
}
