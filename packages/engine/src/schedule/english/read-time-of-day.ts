import { HOUR_MS, MINUTE_MS } from '../duration.ts'
import type { Token } from './tokens.ts'
import { NUMBERS, PARTS_OF_DAY, type PartOfDay } from './vocabulary.ts'
import type { Words } from './words.ts'

const NOON_MS = 12 * HOUR_MS

export interface TimeOfDay {
  ms: number
  /** Neither am nor pm was said, and either could be meant: it is read as on a 24 hour clock unless its day says more. */
  isOpen: boolean
  isPm: boolean
  token: Token
}

const EXPECTED = 'a time such as "9am", "17:30" or "noon"'
const NUMBER_WORDS = new Map([...NUMBERS].filter(([word, value]) => value <= 12 && word !== 'a' && word !== 'an'))

/** Whether a time of day may begin here. A number that counts something is none. */
export function isTimeOfDay(words: Words): boolean {
  const token = words.peek()
  if (token === undefined) return false
  if (token.kind === 'time' || words.is('noon', 'midday', 'midnight')) return true
  if (words.is('half', 'quarter')) return ['past', 'to'].includes(words.word(1))
  if (token.kind === 'number' || NUMBER_WORDS.has(token.word)) return !isCounting(words.word(1))
  return false
}

function isCounting(next: string): boolean {
  return /^(times?|runs?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|s|m|h|d|w)$/.test(next)
}

export function readTimeOfDay(words: Words): TimeOfDay {
  const token = words.peek()
  if (!isTimeOfDay(words) || token === undefined) throw words.unexpected(EXPECTED)
  if (words.accept('noon', 'midday')) return { ms: NOON_MS, isOpen: false, isPm: false, token }
  if (words.accept('midnight')) return { ms: 0, isOpen: false, isPm: false, token }
  if (words.is('half', 'quarter')) return readPast(words, token)
  const clock = readClock(words)
  words.accept('oclock')
  const half = words.accept('am', 'pm')
  if (half !== undefined) return { ms: halved(words, clock, half.word), isOpen: false, isPm: half.word === 'pm', token }
  if (clock.hour > 23) throw words.refuse(token, 'is no time: a day goes from 00:00 to 23:59')
  const isOpen = clock.hour >= 1 && clock.hour <= 12
  const time = { ms: clock.hour * HOUR_MS + clock.restMs, isOpen, isPm: false, token }
  const part = readPartAfter(words)
  return part === undefined ? time : inPart(words, time, part)
}

function readPast(words: Words, token: Token): TimeOfDay {
  const minutes = words.take().word === 'half' ? 30 : 15
  const direction = words.take()
  if (minutes === 30 && direction.word === 'to') throw words.refuse(direction, 'is not said after "half"', 'past')
  const hour = readTimeOfDay(words)
  const ms = hour.ms + (direction.word === 'past' ? minutes : -minutes) * MINUTE_MS
  return { ...hour, ms: (ms + 24 * HOUR_MS) % (24 * HOUR_MS), token }
}

interface ClockTime {
  token: Token
  hour: number
  restMs: number
}

const DOTTED = /^(\d{1,2})\.([0-5]\d)$/

function readClock(words: Words): ClockTime {
  const token = words.take()
  const spoken = NUMBER_WORDS.get(token.word)
  if (spoken !== undefined) return { token, hour: spoken, restMs: 0 }
  if (token.kind === 'time') {
    const [hour, minute, second = 0] = token.word.split(':').map(Number) as [number, number, number?]
    if (minute > 59 || second >= 60) throw words.refuse(token, 'is no time: an hour has 60 minutes of 60 seconds')
    return { token, hour, restMs: minute * MINUTE_MS + Math.round(second * 1_000) }
  }
  const dotted = DOTTED.exec(token.word)
  if (dotted !== null) return { token, hour: Number(dotted[1]), restMs: Number(dotted[2]) * MINUTE_MS }
  const run = /^(\d\d?)(\d\d)$/.exec(token.word)
  if (run !== null && token.word.length > 2) {
    throw words.refuse(token, 'could be a time, a year or a number', `${run[1]}:${run[2]}`)
  }
  if (!/^\d{1,2}$/.test(token.word))
    throw words.refuse(token, `is no time: it is written like "9am", "17:30" or "noon"`)
  return { token, hour: Number(token.word), restMs: 0 }
}

function halved(words: Words, { token, hour, restMs }: ClockTime, half: string): number {
  if (hour < 1 || hour > 12) throw words.refuse(token, `is no hour before ${half}: those go from 1 to 12`)
  return (hour % 12) * HOUR_MS + restMs + (half === 'pm' ? NOON_MS : 0)
}

/** `in the morning`, `at night` after a time. */
function readPartAfter(words: Words): PartOfDay | undefined {
  const ahead = words.follows('in', 'the') ? 2 : words.follows('at', 'night') ? 1 : -1
  const part = ahead < 0 ? undefined : PARTS_OF_DAY.get(words.word(ahead))
  if (part !== undefined) for (let i = 0; i <= ahead; i++) words.take()
  return part
}

/** The hours that each part of a day has, as somebody says them; `night` runs over midnight. */
const HOURS: Record<PartOfDay, { from: number; to: number }> = {
  morning: { from: 1, to: 12 },
  afternoon: { from: 12, to: 18 },
  evening: { from: 17, to: 24 },
  night: { from: 18, to: 24 },
}

/** `8` in the evening is 20:00. Midnight at the end of an evening or night is 24:00. */
export function inPart(words: Words, time: TimeOfDay, part: PartOfDay): TimeOfDay {
  const { from, to } = HOURS[part]
  const atEnd = part === 'evening' || part === 'night'
  const isTwelve = time.isOpen && time.ms === NOON_MS
  if (atEnd && (time.ms === 0 || isTwelve)) return { ...time, ms: 24 * HOUR_MS, isOpen: false }
  const candidates = time.isOpen ? [time.ms, (time.ms + NOON_MS) % (24 * HOUR_MS)] : [time.ms]
  const ms = candidates.find((candidate) => candidate >= from * HOUR_MS && candidate < to * HOUR_MS)
  if (ms === undefined) {
    const hours = `${from}:00 to ${to - 1}:59`
    throw words.refuse(time.token, `is no time of the ${part}, which here goes from ${hours}`)
  }
  return { ...time, ms, isOpen: false }
}

/** One or more: `9:00, 12:00 and 17:30`, `9am and at 5pm`. */
export function readTimesOfDay(words: Words): TimeOfDay[] {
  const times = [readTimeOfDay(words)]
  while (words.joined([',', 'and', 'at'], () => isTimeOfDay(words))) times.push(readTimeOfDay(words))
  complainAboutHalves(words, times)
  return times
}

/** `at 9 and 11 pm`: nobody can tell whether 9 is in the morning. */
function complainAboutHalves(words: Words, times: readonly TimeOfDay[]): void {
  if (times.at(-1)?.isPm !== true) return
  const open = times.find((time) => time.isOpen && time.ms < NOON_MS && time.token.kind === 'number')
  if (open !== undefined)
    throw words.refuse(open.token, 'may be in the morning or, like the last time, in the afternoon')
}
