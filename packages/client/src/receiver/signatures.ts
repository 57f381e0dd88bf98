import { ReceiverError } from './receiver-error.ts'

const PREFIX = 'whsec_'
const VERSION = 'v1,'
const DIGEST_BYTES = 32
/** Belfry sends one per key that is in force; whoever sends more wants to keep us busy. */
const MAX_SIGNATURES = 32

/** Whether one of the signatures in the header is that of one of the secrets. Takes as long whichever it is. */
export async function isSigned(
  secrets: readonly string[],
  head: string,
  body: Uint8Array,
  header: string,
): Promise<boolean> {
  const given = header
    .split(' ', MAX_SIGNATURES)
    .filter((one) => one.startsWith(VERSION))
    .map((one) => bytesOf(one.slice(VERSION.length)))
  const message = concatenated(new TextEncoder().encode(head), body)
  let found = false
  for (const secret of secrets) {
    const expected = await digestOf(keyBytes(secret), message)
    for (const signature of given) if (signature !== null && equal(signature, expected)) found = true
  }
  return found
}

function keyBytes(secret: string): Uint8Array {
  const bytes = bytesOf(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  if (bytes !== null && bytes.length > 0) return bytes
  throw new ReceiverError('malformed_secret', 'a secret must be as GET /v1/signing-keys shows it: whsec_ and base64')
}

async function digestOf(secret: Uint8Array, message: Uint8Array): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, message))
}

/** Looks at every byte, so that the time it takes says nothing about where they differ. */
function equal(given: Uint8Array, expected: Uint8Array): boolean {
  if (given.length !== DIGEST_BYTES) return false
  let difference = 0
  for (let i = 0; i < DIGEST_BYTES; i++) difference |= (given[i] as number) ^ (expected[i] as number)
  return difference === 0
}

function bytesOf(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}

function concatenated(head: Uint8Array, body: Uint8Array): Uint8Array {
  const all = new Uint8Array(head.length + body.length)
  all.set(head)
  all.set(body, head.length)
  return all
}
