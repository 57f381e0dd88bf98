import { notUnderstood } from '../not-understood.ts'

export type TokenKind = 'word' | 'number' | 'ordinal' | 'time' | 'date' | 'odd date' | 'zone' | 'mark'

/** One word, number or mark of a text. */
export interface Token {
  kind: TokenKind
  /** Lower case, without dots and apostrophes; a zone as it is. */
  word: string
  /** As it was written. */
  raw: string
  /** Where it begins, counted from 0. */
  at: number
}

/** Nobody says a time with more, and it bounds all work on it. */
export const MAX_TEXT = 200

/** Tried in this order at every place. */
const PATTERNS: readonly [TokenKind, RegExp][] = [
  ['date', /\d{4}-\d\d-\d\d(?:t\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:z|[+-]\d\d:\d\d)?)?(?![\d:-])/iuy],
  ['odd date', /\d{1,4}([/.])\d{1,2}\1\d{1,4}|\d{1,4}-\d{1,2}-\d{1,4}/uy],
  ['time', /\d{1,2}:\d\d(?::\d\d(?:\.\d{1,3})?)?(?![\d:])/uy],
  ['ordinal', /\d+(?:st|nd|rd|th)(?!\p{L})/iuy],
  ['number', /\d+(?:\.\d+)?/uy],
  ['zone', /\p{L}[\p{L}_]*(?:\/[\p{L}\d_+-]+)+/uy],
  ['word', /\p{L}+(?:['’.]\p{L}+)*\.?/uy],
  ['mark', /[^\s]/uy],
]
const SPACE = /\s*/uy

export function tokensOf(text: unknown): Token[] {
  if (typeof text !== 'string') throw notUnderstood('must be a text such as "every weekday at 9am"')
  if (text.length > MAX_TEXT) {
    throw notUnderstood(`must have at most ${MAX_TEXT} characters, not ${text.length}: say it shorter`)
  }
  const tokens: Token[] = []
  for (let at = skip(text, 0); at < text.length; at = skip(text, at)) {
    const token = tokenAt(text, at)
    tokens.push(token)
    at += token.raw.length
  }
  // A sentence may end in a full stop.
  if (tokens.at(-1)?.word === '.') tokens.pop()
  if (tokens.length === 0) throw notUnderstood('must not be empty: say something like "every weekday at 9am"')
  return tokens
}

function skip(text: string, from: number): number {
  SPACE.lastIndex = from
  return from + (SPACE.exec(text)?.[0].length ?? 0)
}

function tokenAt(text: string, at: number): Token {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = at
    const raw = pattern.exec(text)?.[0]
    if (raw !== undefined) return { kind, raw, at, word: wordOf(kind, raw) }
  }
  return { kind: 'mark', raw: text.charAt(at), at, word: text.charAt(at) }
}

const MARKS: Record<string, string> = { '&': 'and', '@': 'at', '–': '-', '—': '-' }

function wordOf(kind: TokenKind, raw: string): string {
  if (kind === 'zone') return raw
  if (kind === 'mark') return MARKS[raw] ?? raw
  return kind === 'word' ? raw.toLowerCase().replace(/['’.]/g, '') : raw.toLowerCase()
}
