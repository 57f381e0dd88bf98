import type { BelfryError } from '../../errors.ts'
import { nearestName } from '../../job/nearest-name.ts'
import { notUnderstood, shown } from '../not-understood.ts'
import { type Token, tokensOf } from './tokens.ts'
import { AMBIGUOUS, KNOWN_WORDS, PAST } from './vocabulary.ts'

/** Shorter words have too many neighbours to be worth a guess. */
const SHORTEST_GUESS = 3
const GUESSES = [...KNOWN_WORDS].filter((word) => word.length >= SHORTEST_GUESS)
/** Mistakes that lie further from the word than a slip of the finger. */
const MISTAKES = new Map([
  ['fortnite', 'fortnight'],
  ['wendesday', 'wednesday'],
])

/** The words of a text, read from left to right. Every complaint names the word it is about, and its place. */
export class Words {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #position = 0

  constructor(text: unknown) {
    this.#tokens = tokensOf(text)
    this.#text = String(text)
  }

  get isDone(): boolean {
    return this.#position >= this.#tokens.length
  }

  /** A place to come back to. */
  get position(): number {
    return this.#position
  }

  returnTo(position: number): void {
    this.#position = position
  }

  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#position + ahead]
  }

  /** The word `ahead` places further on, or nothing. */
  word(ahead = 0): string {
    return this.peek(ahead)?.word ?? ''
  }

  is(...words: string[]): boolean {
    return words.includes(this.word())
  }

  /** Whether the coming words are exactly these. */
  follows(...words: string[]): boolean {
    return words.every((word, ahead) => this.word(ahead) === word)
  }

  take(): Token {
    const token = this.peek()
    if (token === undefined) throw this.unexpected('more')
    this.#position++
    return token
  }

  accept(...words: string[]): Token | undefined {
    return this.is(...words) ? this.take() : undefined
  }

  /** Takes all of the words, or none. */
  acceptAll(...words: string[]): Token | undefined {
    const first = this.peek()
    if (first === undefined || !this.follows(...words)) return undefined
    this.#position += words.length
    return first
  }

  /** Takes what joins two things, each of `joints` once and in this order, if another thing follows; answers that. */
  joined<Another>(joints: readonly string[], read: () => Another | false | undefined): Another | undefined {
    const from = this.#position
    for (const joint of joints) this.accept(joint)
    const another = this.#position > from && read()
    if (another) return another
    this.returnTo(from)
    return undefined
  }

  /** The word that comes now cannot stand here. */
  unexpected(expected: string): BelfryError {
    const before = this.#tokens[this.#position - 1]
    const place = before === undefined ? 'a time begins with' : `after ${shown(before.raw)} comes`
    const token = this.peek()
    if (token === undefined) return notUnderstood(`${shown(this.#text)} ends too early: ${place} ${expected}`)
    const known = this.#knownButWrong(token)
    if (known !== undefined) return this.refuse(token, known)
    const guess = this.#guess(token)
    return this.refuse(token, `is not understood: ${place} ${expected}`, guess)
  }

  /** A word that was read makes no sense; `instead` would. */
  refuse(token: Token, reason: string, instead?: string): BelfryError {
    const suggestion = instead === undefined ? undefined : this.#with(token, instead)
    return notUnderstood(`${shown(token.raw)} at character ${token.at + 1} ${reason}`, suggestion)
  }

  #with(token: Token, instead: string): string {
    return this.#text.slice(0, token.at) + instead + this.#text.slice(token.at + token.raw.length)
  }

  #knownButWrong(token: Token): string | undefined {
    if (token.word === '-') return 'is not understood: nothing here can be negative'
    if (PAST.has(token.word)) return 'lies in the past: only times to come can be scheduled'
    return AMBIGUOUS.get(token.word)
  }

  #guess({ kind, word }: Token): string | undefined {
    if (kind !== 'word' || word.length < SHORTEST_GUESS) return undefined
    return MISTAKES.get(word) ?? nearestName(word, KNOWN_WORDS.has(word) ? [] : GUESSES)
  }
}
