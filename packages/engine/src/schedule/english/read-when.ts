import { BelfryError } from '../../errors.ts'
import type { Instant } from '../../runtime/clock.ts'
import { canonicalCron } from '../cron-text.ts'
import { parseDuration } from '../duration.ts'
import { notUnderstood, readOrNothing, shown } from '../not-understood.ts'
import { zoneOf } from '../zone.ts'
import type { Clauses } from './clauses.ts'
import { onceOf } from './once.ts'
import { readClauses } from './read-clauses.ts'
import type { Reading } from './reading.ts'
import type { Meaning } from './recurrence.ts'
import { frequencyOf, recurringOf } from './recurring.ts'
import { resolveBounds } from './resolve-bounds.ts'
import { settleTimeAfterEnd } from './time-after-end.ts'
import { type Today, todayOf } from './today.ts'
import { MAX_TEXT, type Token } from './tokens.ts'
import { Words } from './words.ts'

/** What an English time means. Of `cron` and `every` exactly one is set. */
export type UnderstoodText =
  | { kind: 'once'; at: Instant }
  | {
      kind: 'recurring'
      /** Canonical; fires whenever one of them does. */
      cron: string[] | null
      /** ISO 8601, canonical. `startAt` is then set: the first fire time, from which all others are counted. */
      every: string | null
      startAt?: Instant
      endAt?: Instant
      maxRuns?: number
    }

/** As many as a job may have. An odd step over a long window would make dozens. */
const MAX_CRONS = 20

/**
 * Reads an English time, as seen from a moment in a zone. What is not understood, has two meanings or is past is refused
 * with `invalid_argument`, which names the word and its place. The grammar stands in docs/reference/schedules.md.
 */
export function readWhen(text: unknown, at: { now: Instant; timezone: string }): UnderstoodText {
  const today = todayOf(zoneOf(at.timezone), at.now)
  try {
    return understand(text, today)
  } catch (error) {
    throw error instanceof BelfryError ? withGoodSuggestion(error, today) : error
  }
}

/** As many slips in one text are put right together. */
const MAX_SLIPS = 5

/** Only what would be understood is suggested: a word that is near another may still mean something else. */
function withGoodSuggestion(error: BelfryError, today: Today): BelfryError {
  let suggestion = suggestionOf(error)
  if (suggestion === undefined) return error
  for (let slips = 0; slips < MAX_SLIPS && suggestion !== undefined; slips++) {
    try {
      understand(suggestion, today)
      return notUnderstood(error.message, suggestion)
    } catch (next) {
      suggestion = next instanceof BelfryError ? suggestionOf(next) : undefined
    }
  }
  return notUnderstood(error.message)
}

const suggestionOf = ({ complaints }: BelfryError): string | undefined => complaints[0]?.suggestion

function understand(text: unknown, today: Today): UnderstoodText {
  complainAboutOthers(text)
  const words = new Words(text)
  const said = readClauses(words, today)
  const [first] = said.groups
  if (first === undefined || said.groups.some((group) => Object.keys(group).length === 0)) {
    throw notUnderstood(`${shown(text)} says no time: say "every weekday at 9am" or "in 10 minutes"`)
  }
  if (said.groups.length === 1 && frequencyOf(first) === undefined) {
    return { kind: 'once', at: onceOf(words, first, said.bounds, today) }
  }
  return recurring(said)
}

/** What belongs into another field is no English. */
function complainAboutOthers(text: unknown): void {
  if (typeof text !== 'string' || text.length > MAX_TEXT) return
  const trimmed = text.trim()
  if (/^[\d*@H]/i.test(trimmed) && readOrNothing(() => canonicalCron(trimmed))) {
    throw notUnderstood(`${shown(text)} is a cron expression: give it in the field cron`)
  }
  if (/^(P|R\d*\/)/.test(trimmed) && (readOrNothing(() => parseDuration(trimmed)) || trimmed.startsWith('R'))) {
    throw notUnderstood(`${shown(text)} is an interval: give it in the field every`)
  }
}

function recurring(said: Reading): UnderstoodText {
  settleTimeAfterEnd(said)
  const { words, groups, bounds, today } = said
  const { start, endAt, maxRuns } = resolveBounds(words, bounds, today)
  const begun = start?.role === 'starting' ? start : undefined
  const meanings = groups.map((clauses) => {
    const frequency = frequencyOf(clauses)
    if (frequency === undefined) throw words.refuse(tokenOf(clauses), 'begins one moment beside something that recurs')
    return recurringOf({ words, clauses, frequency, today, start, begun })
  })
  const [first] = meanings
  const rest = { ...(endAt === undefined ? {} : { endAt }), ...(maxRuns === undefined ? {} : { maxRuns }) }
  if (first !== undefined && 'every' in first) {
    if (groups[1] !== undefined)
      throw words.refuse(tokenOf(groups[1]), 'cannot stand beside an interval: make it a job of its own')
    const ending = bounds.end?.token ?? bounds.length?.token
    if (ending !== undefined && endAt !== undefined && endAt <= first.startAt)
      throw words.refuse(ending, 'names an end that comes before the first time')
    return { kind: 'recurring', cron: null, ...first, ...rest }
  }
  const cron = [...new Set(meanings.flatMap((meaning, index) => cronOf(words, meaning, groups[index] as Clauses)))]
  if (cron.length > MAX_CRONS) {
    const reason = `begins too many different times: they would take ${cron.length} expressions, and ${MAX_CRONS} may be`
    throw words.refuse(tokenOf(groups.at(-1) as Clauses), reason)
  }
  return {
    kind: 'recurring',
    cron,
    every: null,
    ...(start === undefined ? {} : { startAt: start.at }),
    ...rest,
  }
}

function cronOf(words: Words, meaning: Meaning, clauses: Clauses): string[] {
  if ('cron' in meaning) return meaning.cron
  throw words.refuse(tokenOf(clauses), 'begins an interval, which cannot stand beside others: make it a job of its own')
}

function tokenOf(clauses: Clauses): Token {
  return (Object.values(clauses)[0] as NonNullable<Clauses['now']>).token
}
