import { setEnd, setStart } from './read-bounds.ts'
import { readMonths, readWeekdays } from './read-days.ts'
import { isTimeOfDay, readTimeOfDay, readTimesOfDay } from './read-time-of-day.ts'
import type { ClauseReader, Reading } from './reading.ts'
import type { Token } from './tokens.ts'
import { MONTHS, WEEKDAYS } from './vocabulary.ts'
import type { Words } from './words.ts'

/** `at 9:00 and 17:30`, `at minute 15`. */
export const readAt: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.accept('at')
  if (token === undefined) return false
  words.accept('the')
  const isCounted = words.peek()?.kind === 'number' && words.word(1).startsWith('minute')
  if (isCounted || words.is('minute', 'minutes', 'second', 'seconds', ':')) putMinutes(reading, token)
  else reading.put('times', { token, list: readTimesOfDay(words) })
  return true
}

/** `9am`, `17:30`; a bare number is a time only after `at`. */
export const readBareTime: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.peek()
  if (token === undefined || !isTimeOfDay(words)) return false
  const isSure = token.kind === 'time' || /^(am|pm|oclock)$/.test(words.word(1)) || token.kind === 'word'
  if (isSure) reading.put('times', { token, list: readTimesOfDay(words) })
  return isSure
}

export const readOnTheHour: ClauseReader = (reading) => {
  const token = reading.words.acceptAll('on', 'the', 'hour')
  if (token !== undefined) reading.put('minutes', { token, unit: 'minute', list: [0] })
  return token !== undefined
}

/** `15 minutes past every hour`, `15 past the hour`. */
export const readMinutesPast: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.peek()
  if (token?.kind !== 'number') return false
  const ahead = /^min(ute)?s?$/.test(words.word(1)) ? 2 : 1
  const isPast =
    ['past', 'after'].includes(words.word(ahead)) && ['the', 'every', 'each'].includes(words.word(ahead + 1))
  if (isPast) putMinutes(reading, token)
  return isPast
}

/** `minute 15`, `minutes 0 and 30`, `15 minutes past the hour`. */
function putMinutes(reading: Reading, token: Token): void {
  const { words } = reading
  const unit = words.word().startsWith('second') ? 'second' : 'minute'
  if (words.peek()?.kind !== 'number') words.take()
  const list: number[] = []
  do {
    const number = words.peek()
    if (number?.kind !== 'number') throw words.unexpected('a number from 0 to 59')
    words.take()
    const value = Number(number.word)
    if (!Number.isInteger(value) || value > 59) throw words.refuse(number, `is no ${unit}: they go from 0 to 59`)
    list.push(value)
  } while (words.joined([',', 'and'], () => words.peek()?.kind === 'number' && words.word(1) !== 'times'))
  if (words.accept('minutes', 'minute', 'mins', 'min') !== undefined || words.is('past', 'after'))
    readPastTheHour(words)
  reading.put('minutes', { token, unit, list: [...new Set(list)].sort((a, b) => a - b) })
}

function readPastTheHour(words: Words): void {
  if (words.accept('past', 'after') === undefined) throw words.unexpected('"past the hour"')
  if (words.acceptAll('the', 'hour') === undefined && !words.is('every', 'each')) throw words.unexpected('"the hour"')
}

/** `between 9am and 5pm`, `between monday and friday`, `between 1 december and 24 december`. */
export const readBetween: ClauseReader = (reading) => {
  const { words, bounds, today } = reading
  if (!words.is('between')) return false
  const position = words.position
  const token = words.take()
  if (isClockTime(words)) {
    putWindow(reading, token, ['and'])
    return true
  }
  const weekdays = WEEKDAYS.has(words.word(2)) ? readWeekdays(words, ['and']) : undefined
  if (weekdays !== undefined) {
    reading.put('weekdays', weekdays)
    return true
  }
  words.returnTo(position)
  setStart(words, bounds, today)
  if (!words.is('and')) throw words.unexpected('"and" and the end')
  setEnd(words, bounds, today)
  return true
}

/** `from 9 to 17`, `from monday to friday`, `from june to august`, `from tomorrow`, `from now on`. */
export const readFrom: ClauseReader = (reading) => {
  const { words, bounds, today } = reading
  if (!words.is('from')) return false
  const position = words.position
  const token = words.take()
  if (words.acceptAll('now', 'on')) return true
  if (isClockTime(words)) {
    putWindow(reading, token, ['to', 'until', 'till', '-'])
    return true
  }
  const weekdays = readWeekdays(words)
  if (weekdays !== undefined && weekdays.days.length > 1) {
    reading.put('weekdays', weekdays)
    return true
  }
  words.returnTo(position + 1)
  const months = /^\d/.test(words.word(1)) ? undefined : readMonths(words)
  if (months !== undefined) {
    reading.put('months', { ...months, isRecurring: false })
    return true
  }
  words.returnTo(position)
  setStart(words, bounds, today)
  if (words.is('to')) setEnd(words, bounds, today)
  return true
}

function isClockTime(words: Words): boolean {
  return isTimeOfDay(words) && !MONTHS.has(words.word(1))
}

function putWindow(reading: Reading, token: Token, joints: string[]): void {
  const { words } = reading
  const from = readTimeOfDay(words)
  if (words.accept(...joints) === undefined) throw words.unexpected(`"${joints[0]}" and the end`)
  reading.put('window', { token, from, to: readTimeOfDay(words) })
}
