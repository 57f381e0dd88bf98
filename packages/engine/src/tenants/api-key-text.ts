import { hash } from 'node:crypto'
import type { Random } from '../runtime/random.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX_CHARACTERS = 8
/** Some 238 bits. */
const SECRET_CHARACTERS = 40
const KEY = /^bk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,64}$/
/** The largest multiple of 62 that a byte can hold: what is above it would make some characters likelier. */
const FAIR_BYTES = 248

/** `bk_`, a part that may be shown, and one that is only given out once. */
export function newApiKey(random: Random): { prefix: string; key: string } {
  const prefix = `bk_${characters(PREFIX_CHARACTERS, random)}`
  return { prefix, key: `${prefix}_${characters(SECRET_CHARACTERS, random)}` }
}

/** What has another form needs no look-up. */
export const looksLikeApiKey = (text: unknown): text is string => typeof text === 'string' && KEY.test(text)

/** A key is chance all through, so a plain hash cannot be guessed backwards and costs nothing per request. */
export const hashOfApiKey = (key: string): Buffer => hash('sha256', key, 'buffer')

function characters(count: number, random: Random): string {
  let text = ''
  while (text.length < count) {
    for (const byte of random.bytes(count)) {
      if (byte < FAIR_BYTES && text.length < count) text += ALPHABET[byte % ALPHABET.length]
    }
  }
  return text
}
