import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../duration.ts'
/** The first three fields of an expression. */
export interface CronTime {
  second: string
  minute: string
  hour: string
}

/**
 * Times of day as few expressions: 9:00 and 17:30 need two, since an expression fires at each of its minutes in each of its
 * hours. The hours stay a list, which makes them fixed times when clocks change.
 */
export function fixedTimes(times: readonly number[]): CronTime[] {
  return grouped(times, { minutes: (list) => list.join(','), hours: (list) => list.join(',') })
}

/** Every `stepMs` from one time of day to another, both included; it may run over midnight. */
export function windowTimes(fromMs: number, toMs: number, stepMs: number): CronTime[] {
  const lengthMs = toMs > fromMs ? toMs - fromMs : toMs + DAY_MS - fromMs
  // Within a minute only whole seconds of it can be said, so the last minute of the window stands apart.
  if (stepMs < MINUTE_MS) {
    const minutes = windowTimes(fromMs, (fromMs + lengthMs - MINUTE_MS) % DAY_MS, MINUTE_MS)
    const inside = lengthMs < MINUTE_MS * 2 ? fixedTimes([fromMs]) : minutes
    return [...inside.map((time) => ({ ...time, second: stepField(stepMs / SECOND_MS) })), ...fixedTimes([toMs])]
  }
  const count = Math.floor(lengthMs / stepMs) + 1
  const times = Array.from({ length: count }, (_, index) => (fromMs + index * stepMs) % DAY_MS)
  return grouped(times, { minutes: (list) => field(list, 59), hours: (list) => field(list, 23) })
}

/** `*` or `*` with a step that divides what it counts. */
export function stepField(step: number): string {
  return step === 1 ? '*' : `*/${step}`
}

interface Spelling {
  minutes(values: number[]): string
  hours(values: number[]): string
}

/** Hours that have the same minutes share an expression. */
function grouped(times: readonly number[], spelling: Spelling): CronTime[] {
  const groups = new Map<string, { second: number; minutes: number[]; hours: number[] }>()
  const sorted = [...new Set(times)].sort((a, b) => a - b)
  for (const second of new Set(sorted.map((time) => Math.floor((time % MINUTE_MS) / SECOND_MS)))) {
    for (const [hour, minutes] of minutesByHour(sorted, second)) {
      const key = `${second} ${minutes.join(',')}`
      const group = groups.get(key) ?? { second, minutes, hours: [] }
      group.hours.push(hour)
      groups.set(key, group)
    }
  }
  return [...groups.values()].map(({ second, minutes, hours }) => ({
    second: String(second),
    minute: spelling.minutes(minutes),
    hour: spelling.hours(hours),
  }))
}

function minutesByHour(times: readonly number[], second: number): Map<number, number[]> {
  const byHour = new Map<number, number[]>()
  for (const time of times) {
    if (Math.floor((time % MINUTE_MS) / SECOND_MS) !== second) continue
    const hour = Math.floor(time / HOUR_MS)
    byHour.set(hour, [...(byHour.get(hour) ?? []), Math.floor((time % HOUR_MS) / MINUTE_MS)])
  }
  return byHour
}

/** Ascending numbers as a field: with a step or as ranges where that is shorter. */
function field(values: readonly number[], max: number): string {
  const [first = 0, second = 0] = values
  const last = values.at(-1) ?? 0
  const step = second - first
  const isEven = values.every((value, index) => value === first + index * step)
  if (isEven && step > 1 && values.length * step === max + 1 && first === 0) return `*/${step}`
  if (isEven && step > 1 && values.length > 2) {
    return `${first}-${last + step > max ? max : last}/${step}`
  }
  if (values.length === max + 1) return '*'
  return runs(values).join(',')
}

function runs(values: readonly number[]): string[] {
  const texts: string[] = []
  for (let index = 0; index < values.length; ) {
    let end = index
    while (values[end + 1] === (values[end] as number) + 1) end++
    // Two hours in a row are a range too: ranges follow the clock where lists are fixed times.
    texts.push(end > index ? `${values[index]}-${values[end]}` : String(values[index]))
    index = end + 1
  }
  return texts
}
