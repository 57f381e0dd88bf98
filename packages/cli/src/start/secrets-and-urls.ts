import { readDatabaseUrl, type ServerUse } from '@belfry/engine'
import { UsageError } from '../usage-error.ts'

/** Values that may hold a secret are never repeated in a message: it ends up in logs. */
export function checkDatabaseUrl(name: string, text: string, use: ServerUse): string {
  const expected = 'must look like postgres://user:password@host:5432/database'
  const [, scheme] = /^([a-z][a-z\d+.-]*):/i.exec(text) ?? []
  if (scheme === undefined) throw new UsageError(`${name} is not a URL; it ${expected}`)
  if (!/^postgres(ql)?$/.test(scheme)) throw new UsageError(`${name} begins with ${scheme}:, but ${expected}`)
  const read = readDatabaseUrl(text, use)
  if (typeof read === 'string') throw new UsageError(`${name} ${read}`)
  if (read.servers.length === 0 && !URL.canParse(text)) throw new UsageError(`${name} is not a URL; it ${expected}`)
  return text
}

const SHORTEST_KEY = 32

export function checkAdminKey(text: string): string {
  const length = [...text].length
  if (length < SHORTEST_KEY) {
    throw new UsageError(
      `BELFRY_ADMIN_KEY has ${length} characters, but must have ${SHORTEST_KEY} or more; \`openssl rand -hex 32\` makes a good one`,
    )
  }
  if (!/^[!-~]{1,512}$/.test(text)) {
    throw new UsageError(
      'BELFRY_ADMIN_KEY cannot stand in an HTTP header; use up to 512 letters, digits and signs of ASCII, without spaces',
    )
  }
  return text
}

export function checkEncryptionKey(text: string): string {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return text
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text) && Buffer.from(text, 'base64').length === 32) return text
  throw new UsageError(
    'BELFRY_ENCRYPTION_KEY must be 32 bytes, written as base64 (44 characters) or hex (64); `openssl rand -base64 32` makes one',
  )
}

export function checkPublicUrl(text: string): string {
  const expected = 'must look like https://belfry.example.com, without user, query or fragment'
  if (!URL.canParse(text)) throw new UsageError(`BELFRY_PUBLIC_URL is not a URL; it ${expected}`)
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new UsageError(`BELFRY_PUBLIC_URL ${expected}`)
  return url.href.replace(/\/+$/, '')
}
