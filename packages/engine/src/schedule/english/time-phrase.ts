import { type FieldShape, shapeOf, valuesOf } from './cron-field-values.ts'
import { clockText, counted, listed, ordinal } from './english-list.ts'

/** When in a day an expression fires. Times can be merged with those of other expressions; the rest stands for itself. */
export type TimePhrase =
  | { kind: 'times'; seconds: readonly number[] }
  | { kind: 'frequency'; text: string }
  | { kind: 'odd'; text: string }

/** More times in a row are not read as a list any more. */
const MAX_TIMES = 8
const MINUTES = { min: 0, max: 59 }

export function timePhrase(second: string, minute: string, hour: string): TimePhrase {
  const times = plainTimes(second, minute, hour)
  if (times !== undefined) return { kind: 'times', seconds: times }
  const text = second === '0' ? frequency(minute, hour) : seconds(second, minute, hour)
  return text === undefined ? { kind: 'odd', text: odd(second, minute, hour) } : { kind: 'frequency', text }
}

/** Fixed hours with few times, as seconds of the day. */
function plainTimes(second: string, minute: string, hour: string): number[] | undefined {
  const hours = shapeOf(hour)
  const [seconds, minutes] = [shapeOf(second), valuesOf(minute, MINUTES)]
  if (hours.kind !== 'list' || seconds.kind !== 'list' || minutes === undefined) return undefined
  if (hours.values.length * minutes.length * seconds.values.length > MAX_TIMES) return undefined
  return hours.values.flatMap((h) => minutes.flatMap((m) => seconds.values.map((s) => h * 3_600 + m * 60 + s)))
}

function frequency(minute: string, hour: string): string | undefined {
  const hours = shapeOf(hour)
  const minutes = valuesOf(minute, MINUTES)
  if (minutes === undefined) return undefined
  const step = evenStep(minute)
  switch (hours.kind) {
    case 'all':
      return step === undefined ? `every hour${atMinutes(minutes)}` : `every ${counted(step, 'minute')}`
    case 'step':
      if (24 % hours.step === 0 && minutes.length <= MAX_TIMES) {
        return `every ${counted(hours.step, 'hour')}${atMinutes(minutes)}`
      }
      return inHours({ from: 0, to: Math.floor(23 / hours.step) * hours.step, step: hours.step }, minutes, step)
    case 'range':
      return inHours(hours, minutes, step)
    case 'list':
      return hours.values.length === 1
        ? inHours({ from: hours.values[0] as number, to: hours.values[0] as number, step: 1 }, minutes, step)
        : undefined
    case 'odd':
      return undefined
  }
}

function atMinutes(minutes: readonly number[]): string {
  if (minutes.length === 1) return minutes[0] === 0 ? '' : ` at minute ${minutes[0]}`
  return ` at minutes ${listed(minutes.map(String))}`
}

/** The step of minutes that are spread evenly over the hour. */
function evenStep(minute: string): number | undefined {
  const shape = shapeOf(minute)
  if (shape.kind === 'all') return 1
  return shape.kind === 'step' && 60 % shape.step === 0 ? shape.step : undefined
}

interface Hours {
  from: number
  to: number
  step: number
}

/** `every 2 hours from 09:00 to 17:00`, `every 10 minutes from 09:00 to 16:50`. */
function inHours({ from, to, step }: Hours, minutes: readonly number[], minuteStep: number | undefined) {
  const [only, second] = minutes
  if (only !== undefined && second === undefined) {
    const last = from + Math.floor((to - from) / step) * step
    if (last === from) return undefined
    return `every ${counted(step, 'hour')} from ${clockText(from, only)} to ${clockText(last, only)}`
  }
  if (step !== 1 || minuteStep === undefined) return undefined
  return `every ${counted(minuteStep, 'minute')} from ${clockText(from, 0)} to ${clockText(to, minutes.at(-1) ?? 0)}`
}

function seconds(second: string, minute: string, hour: string): string | undefined {
  if (hour !== '*' || minute !== '*') return undefined
  const shape = shapeOf(second)
  if (shape.kind === 'all') return 'every second'
  if (shape.kind === 'step' && 60 % shape.step === 0) return `every ${counted(shape.step, 'second')}`
  if (shape.kind !== 'list') return undefined
  return `every minute at ${shape.values.length === 1 ? 'second' : 'seconds'} ${listed(shape.values.map(String))}`
}

/** Field by field, for what has no name of its own. */
function odd(second: string, minute: string, hour: string): string {
  if (second === '0' && minute === 'H' && hour === 'H') return "at a time of the job's own"
  if (second === '0' && minute === 'H' && hour === '*') return "every hour at a minute of the job's own"
  const step = /^H\/(\d+)$/.exec(minute)?.[1]
  if (second === '0' && step !== undefined && hour === '*')
    return `every ${step} minutes from a minute of the job's own`
  const parts = [
    ...(second === '0' ? [] : [`at ${fieldPhrase(second, 'second')}`]),
    `${second === '0' ? 'at' : 'of'} ${fieldPhrase(minute, 'minute')}`,
    `of ${fieldPhrase(hour, 'hour')}`,
  ]
  return parts.join(' ')
}

/** `minute 5`, `every 7th minute from 0`, `a minute of the job's own from 0 to 29`. */
export function fieldPhrase(text: string, noun: string): string {
  return listed(text.split(',').map((item) => itemPhrase(item, shapeOf(item), noun)))
}

const HASHED = /^H(?:\((\d+)-(\d+)\))?(?:\/(\d+))?$/

function itemPhrase(item: string, shape: FieldShape, noun: string): string {
  switch (shape.kind) {
    case 'all':
      return `every ${noun}`
    case 'step':
      return `every ${ordinal(shape.step)} ${noun} from the first`
    case 'list':
      return `${noun} ${item}`
    case 'range':
      return shape.step === 1
        ? `${noun}s ${shape.from} to ${shape.to}`
        : `every ${ordinal(shape.step)} ${noun} from ${shape.from} to ${shape.to}`
    case 'odd': {
      const [, from, to, step] = HASHED.exec(item) ?? []
      const range = from === undefined ? '' : ` from ${from} to ${to}`
      return step === undefined
        ? `${noun === 'hour' ? 'an' : 'a'} ${noun} of the job's own${range}`
        : `every ${ordinal(Number(step))} ${noun}${range} (from one of the job's own)`
    }
  }
}
