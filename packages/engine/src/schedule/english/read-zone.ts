import { readOrNothing } from '../not-understood.ts'
import { zoneOf } from '../zone.ts'
import type { Today } from './today.ts'
import type { Token } from './tokens.ts'
import { KNOWN_WORDS } from './vocabulary.ts'
import type { Words } from './words.ts'

/** City names have at most this many words (Port of Spain). */
const MAX_CITY_WORDS = 3

/**
 * Reads `Europe/Berlin`, `UTC`, `Berlin time` or `local time` if one begins here. The zone of a job is a field of its own: a
 * text may repeat it and may not contradict it.
 */
export function readZone(words: Words, today: Today): boolean {
  const token = words.peek()
  if (token === undefined) return false
  if (token.kind === 'zone' || ['utc', 'gmt'].includes(token.word)) {
    words.take()
    words.accept('time')
    compare(words, token, token.kind === 'zone' ? token.word : 'UTC', today)
    return true
  }
  if (words.acceptAll('local', 'time')) return true
  const city = readCity(words)
  if (city === undefined) return false
  const isOurs = today.zone.name.split('/').at(-1)?.toLowerCase() === city
  if (!isOurs) compare(words, token, zoneOfCity(city), today)
  return true
}

function readCity(words: Words): string | undefined {
  const parts: string[] = []
  while (parts.length < MAX_CITY_WORDS && words.peek(parts.length)?.kind === 'word') {
    const word = words.word(parts.length)
    if (KNOWN_WORDS.has(word)) break
    parts.push(word)
  }
  if (parts.length === 0 || words.word(parts.length) !== 'time') return undefined
  for (let taken = 0; taken <= parts.length; taken++) words.take()
  return parts.join('_')
}

function zoneOfCity(city: string): string | undefined {
  return Intl.supportedValuesOf('timeZone').find((name) => name.toLowerCase().split('/').at(-1) === city)
}

function compare(words: Words, token: Token, name: string | undefined, { zone }: Today): void {
  const said = name === undefined ? undefined : readOrNothing(() => zoneOf(name).name)
  if (said === undefined) {
    throw words.refuse(token, 'is no time zone: give one in the field timezone, such as "Europe/Berlin"')
  }
  if (said === zone.name) return
  throw words.refuse(
    token,
    `contradicts the time zone of the job, ${zone.name}: give timezone "${said}" beside the text`,
  )
}
