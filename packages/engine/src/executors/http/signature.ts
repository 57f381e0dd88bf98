import { createHash, hash } from 'node:crypto'

const BLOCK = 64
const DIGEST = 32
/** Room for the message in the buffer that is used again and again; larger ones get a buffer of their own. */
const SCRATCH = 32 * 1024

interface Padded {
  inner: Buffer
  /** The outer key, and room for the inner digest behind it. */
  outer: Buffer
}

const padded = new WeakMap<Buffer, Padded>()
const scratch = Buffer.alloc(BLOCK + SCRATCH)
/** The key that the scratch begins with. */
let scratchKey: Buffer | null = null

/** `v1,` and the base64 of HMAC-SHA256, as Standard Webhooks writes it. */
export function signatureOf(secret: Buffer, head: string, body: string | Buffer | null): string {
  return `v1,${hmacOf(secret, head, body, 'base64')}`
}

/** HMAC-SHA256, put together from two one-shot hashes, since making an Hmac object alone costs more than both. */
export function hmacOf(
  secret: Buffer,
  head: string,
  body: string | Buffer | null,
  encoding: 'base64' | 'base64url',
): string {
  let keys = padded.get(secret)
  if (keys === undefined) {
    keys = pad(secret)
    padded.set(secret, keys)
  }
  keys.outer.write(innerDigest(keys.inner, head, body), BLOCK, 'binary')
  return hash('sha256', keys.outer, encoding)
}

function innerDigest(inner: Buffer, head: string, body: string | Buffer | null): string {
  const text = typeof body === 'string' ? head + body : head
  // A character takes three bytes at most.
  const room = BLOCK + text.length * 3 + (Buffer.isBuffer(body) ? body.length : 0)
  const message = startingWith(inner, room)
  let end = BLOCK + message.write(text, BLOCK)
  if (Buffer.isBuffer(body)) end += body.copy(message, end)
  return hash('sha256', message.subarray(0, end), 'binary')
}

function startingWith(inner: Buffer, room: number): Buffer {
  if (room > scratch.length) {
    const message = Buffer.allocUnsafe(room)
    inner.copy(message)
    return message
  }
  // One tenant's calls come one after the other, and have the same key.
  if (scratchKey !== inner) inner.copy(scratch)
  scratchKey = inner
  return scratch
}

function pad(secret: Buffer): Padded {
  const key = secret.length > BLOCK ? createHash('sha256').update(secret).digest() : secret
  const inner = Buffer.alloc(BLOCK, 0x36)
  const outer = Buffer.alloc(BLOCK + DIGEST, 0x5c)
  for (let i = 0; i < key.length; i++) {
    inner[i] = 0x36 ^ (key[i] as number)
    outer[i] = 0x5c ^ (key[i] as number)
  }
  return { inner, outer }
}
