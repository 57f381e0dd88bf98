import { createCipheriv, createDecipheriv } from 'node:crypto'
import { BelfryError, invariant } from '../errors.ts'
import { systemRandom } from '../runtime/random.ts'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Says how the rest is to be read, so that another algorithm can come beside this one. */
const VERSION = 1
const HEADER_BYTES = 1 + NONCE_BYTES

/**
 * Seals what is kept encrypted: one byte of version, the nonce, the ciphertext, the tag. The context (whose it is, what it is,
 * its name) is authenticated with it, so that a row copied over another one cannot be opened there.
 */
export class Vault {
  readonly #key: Uint8Array

  constructor(key: Uint8Array) {
    invariant(key.length === KEY_BYTES, `the encryption key has ${key.length} bytes`)
    this.#key = key
  }

  seal(plain: Uint8Array, context: string): Buffer {
    // A nonce may never come twice under one key, so it is not drawn from chance that can be replayed.
    const header = Buffer.concat([Buffer.of(VERSION), systemRandom.bytes(NONCE_BYTES)])
    const cipher = createCipheriv(ALGORITHM, this.#key, header.subarray(1), { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(context))
    return Buffer.concat([header, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /** Throws `cannot_decrypt` unless this very key sealed these very bytes for this context. */
  open(sealed: Uint8Array, context: string): Buffer {
    if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== VERSION) throw unreadable(context)
    const nonce = sealed.subarray(1, HEADER_BYTES)
    const tagAt = sealed.length - TAG_BYTES
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(sealed.subarray(tagAt))
      return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, tagAt)), decipher.final()])
    } catch (cause) {
      throw unreadable(context, cause)
    }
  }
}

const unreadable = (context: string, cause?: unknown): BelfryError =>
  new BelfryError('cannot_decrypt', `${context} was sealed with another encryption key, or has been changed`, { cause })

const HEX = /^[0-9a-f]{64}$/i
const BASE64 = /^[0-9a-z+/_-]{43}=?$/i

/** 32 bytes, written in hex or base64. */
export function readEncryptionKey(text: string): Uint8Array {
  if (typeof text === 'string') {
    const trimmed = text.trim()
    if (HEX.test(trimmed)) return Buffer.from(trimmed, 'hex')
    if (BASE64.test(trimmed)) return Buffer.from(trimmed, 'base64')
  }
  // What was given is not shown: it is nearly a key.
  throw new BelfryError('invalid_option', 'encryptionKey: must be 32 bytes, in base64 or hex', {
    complaints: [
      {
        path: 'encryptionKey',
        message: 'must be 32 bytes, in base64 or hex',
        suggestion: 'what `openssl rand -base64 32` prints',
      },
    ],
  })
}
