/**
 * What schedules promise, written as naively as possible: the wall clock of every single minute (or second) is read from the
 * runtime, and the rules are applied to the list as they are written down. Shares nothing with the engine's evaluator.
 */

export interface Fields {
  seconds: Set<number>
  minutes: Set<number>
  hours: Set<number>
  months: Set<number>
  /** Null: not restricted. */
  day: ((date: LocalDate) => boolean) | null
  weekday: ((date: LocalDate) => boolean) | null
  /** Whether the hours were written as a number or a list of numbers. */
  isFixed: boolean
}

export interface LocalDate {
  year: number
  month: number
  day: number
  weekday: number
  daysInMonth: number
}

export type NaiveExclusion =
  | { kind: 'days'; has(date: string, weekday: number): boolean }
  | { kind: 'instants'; from: number; to: number }
  | { kind: 'times'; fields: Fields }

export interface NaiveSchedule {
  fields: Fields[]
  dst: { gap?: 'after' | 'skip'; overlap?: 'first' | 'last' | 'both' }
  startAt: number
  endAt: number
  exclude: NaiveExclusion[]
  moves: boolean
}

/** The wall clock of a zone at every step of a stretch of time. */
export interface Walls {
  step: number
  from: number
  /** Local times as if they were UTC; one for each step. */
  locals: number[]
  /** Which steps a local time was read at. */
  stepsOf: Map<number, number[]>
}

const DAY = 86_400_000
const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone)
  if (format === undefined) {
    const two = '2-digit'
    const parts = { year: 'numeric', month: two, day: two, hour: two, minute: two, second: two } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', ...parts })
    formats.set(zone, format)
  }
  return format
}

export function readWall(zone: string, instant: number): number {
  const digits = formatOf(zone).format(instant)
  const [month, day, year, hour, minute, second] = digits.split(/\D+/).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

export function readWalls(zone: string, from: number, until: number, step: number): Walls {
  const locals: number[] = []
  const stepsOf = new Map<number, number[]>()
  for (let instant = from; instant < until; instant += step) {
    const local = readWall(zone, instant)
    const steps = stepsOf.get(local)
    if (steps === undefined) stepsOf.set(local, [locals.length])
    else steps.push(locals.length)
    locals.push(local)
  }
  return { step, from, locals, stepsOf }
}

export function localDate(local: number): LocalDate {
  const date = new Date(local)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1]
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return { year, month, day: date.getUTCDate(), weekday: date.getUTCDay(), daysInMonth }
}

function matches(fields: Fields, local: number): boolean {
  const seconds = (((local % DAY) + DAY) % DAY) / 1_000
  if (!fields.hours.has(Math.floor(seconds / 3_600)) || !fields.minutes.has(Math.floor(seconds / 60) % 60)) return false
  if (!fields.seconds.has(seconds % 60)) return false
  const date = localDate(local)
  if (!fields.months.has(date.month)) return false
  if (fields.day === null) return fields.weekday === null || fields.weekday(date)
  if (fields.weekday === null) return fields.day(date)
  return fields.day(date) || fields.weekday(date)
}

function isDayExcluded(schedule: NaiveSchedule, local: number): boolean {
  const date = new Date(local)
  const text = date.toISOString().slice(0, 10)
  return schedule.exclude.some((one) => one.kind === 'days' && one.has(text, date.getUTCDay()))
}

function isTimeExcluded(schedule: NaiveSchedule, local: number): boolean {
  return schedule.exclude.some((one) => one.kind === 'times' && matches(one.fields, local))
}

function isInstantExcluded(schedule: NaiveSchedule, instant: number): boolean {
  return schedule.exclude.some((one) => one.kind === 'instants' && one.from <= instant && instant < one.to)
}

/** A fire time, and a local time that it stands for. */
export interface NaiveFire {
  instant: number
  meant: number
}

/** When one set of fields fires, before anything moves. `isOpen` is asked about local times. */
function* firesOf(
  fields: Fields,
  dst: NaiveSchedule['dst'],
  walls: Walls,
  isOpen: (local: number) => boolean,
): Generator<NaiveFire> {
  const gap = dst.gap ?? (fields.isFixed ? 'after' : 'skip')
  const overlap = dst.overlap ?? (fields.isFixed ? 'first' : 'both')
  const counts = (local: number) => matches(fields, local) && isOpen(local)
  for (const [index, local] of walls.locals.entries()) {
    const instant = walls.from + index * walls.step
    const previous = walls.locals[index - 1]
    if (counts(local)) {
      const steps = walls.stepsOf.get(local) as number[]
      const fires = overlap === 'both' || (overlap === 'first' ? steps[0] : steps.at(-1)) === index
      if (fires) yield { instant, meant: local }
    }
    if (gap === 'after' && previous !== undefined && local > previous + walls.step && isOpen(local)) {
      for (let skipped = previous + walls.step; skipped < local; skipped += walls.step) {
        if (counts(skipped)) yield { instant, meant: skipped }
      }
    }
  }
}

/** The first step with a local time; if there is none, the first one after it. */
export function instantOf(walls: Walls, local: number): number | undefined {
  const step = walls.stepsOf.get(local)?.[0]
  if (step !== undefined) return walls.from + step * walls.step
  const index = walls.locals.findIndex((one, at) => one > local && (walls.locals[at - 1] ?? one) < local)
  return index < 0 ? undefined : walls.from + index * walls.step
}

/** All fire times within the walls. What lies near their edges is not to be trusted. */
export function naiveFires(schedule: NaiveSchedule, walls: Walls, intervals: readonly NaiveFire[] = []): number[] {
  const isOpen = (local: number) => !isDayExcluded(schedule, local) && !isTimeExcluded(schedule, local)
  const localAt = (instant: number) => walls.locals[Math.floor((instant - walls.from) / walls.step)] as number
  const given = intervals.filter(({ instant }) => schedule.moves || isOpen(localAt(instant)))
  for (const fields of schedule.fields) {
    given.push(...firesOf(fields, schedule.dst, walls, schedule.moves ? () => true : isOpen))
  }
  const fires = new Set<number>()
  for (const { instant, meant } of given) {
    if (instant < schedule.startAt) continue
    const moved = schedule.moves ? move(schedule, walls, { instant, meant }) : instant
    if (moved === undefined || moved >= schedule.endAt) continue
    if (schedule.moves && isTimeExcluded(schedule, localAt(moved))) continue
    if (!isInstantExcluded(schedule, moved)) fires.add(moved)
  }
  return [...fires].sort((one, other) => one - other)
}

function move(schedule: NaiveSchedule, walls: Walls, { instant, meant }: NaiveFire): number | undefined {
  const shown = walls.locals[Math.floor((instant - walls.from) / walls.step)] as number
  if (!isDayExcluded(schedule, shown)) return instant
  // What was meant on the day before moves with the day that it fires on.
  let local = Math.floor(meant / DAY) === Math.floor(shown / DAY) ? meant : shown
  while (isDayExcluded(schedule, local)) local += DAY
  return instantOf(walls, local)
}
