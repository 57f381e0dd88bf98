/** What a server is for: it must take writes, must be no standby (which may know less), or may be any. */
export type ServerUse = 'writes' | 'fresh reads' | 'reads'

export interface ServerAddress {
  host: string
  port: number
}

/** Where a database may be. */
export interface DatabaseUrl {
  /** As node-postgres reads it, which knows one server only: the first. */
  url: string
  /** All servers, in the order in which they are tried; none if the URL names only one. */
  servers: readonly ServerAddress[]
}

const LOOKS = 'must look like postgres://user:password@host:5432/database'
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?#].*)?$/s
const DEFAULT_PORT = 5432
const SERVER = /^(\[[\da-fA-F:.]+\]|[^:[\]]*)(?::(.*))?$/s

/** libpq's names for what a server may be asked to be. Belfry asks for what it needs, whether the URL says so or not. */
const WRITABLE = ['read-write', 'primary']
const ANY = ['any']

/**
 * Reads `postgres://user:password@a:5432,b:5433/database?target_session_attrs=read-write`, as libpq does. A text says what is
 * wrong, and repeats nothing of the URL: what stands at the wrong place may be the password. What is no such URL (the directory
 * of a socket, for example) is left to node-postgres.
 */
export function readDatabaseUrl(text: string, use: ServerUse): DatabaseUrl | string {
  if (!/^postgres(ql)?:/.test(text)) return { url: text, servers: [] }
  const parts = PARTS.exec(text)
  if (!parts) return LOOKS
  const [, before = '', list = '', after = ''] = parts
  const names = list.split(',')
  const url = `${before}${names[0]}${after}`
  const query = new URLSearchParams(/\?([^#]*)/.exec(after)?.[1] ?? '')
  if (query.get('host')?.includes(',') || query.get('port')?.includes(','))
    return 'names several servers after the database; they stand before it: postgres://user:password@a:5432,b:5432/database'
  const attribute = query.get('target_session_attrs')
  const allowed = use === 'reads' ? ANY : WRITABLE
  if (attribute !== null && !allowed.includes(attribute))
    return `may have no other target_session_attrs than ${allowed.join(' or ')}`
  if (names.length === 1) return { url: text, servers: [] }
  if (query.has('host') || query.has('port')) return 'names several servers, and another one after the database'
  return problemOfServers(names) ?? { url, servers: names.map((name) => addressOf(name) as ServerAddress) }
}

function problemOfServers(names: readonly string[]): string | null {
  for (const [index, name] of names.entries()) {
    const which = `server ${index + 1} of ${names.length}`
    const address = addressOf(name)
    if (address === null || address.host === '') return `has no host name for ${which}`
    const { port } = address
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      return `has a port for ${which} that is no number from 1 to 65535`
  }
  return null
}

function addressOf(name: string): ServerAddress | null {
  const [, host, port] = SERVER.exec(name) ?? []
  if (host === undefined) return null
  try {
    // A directory of a Unix socket is written with %2F.
    const named = decodeURIComponent(host.replace(/^\[(.*)\]$/, '$1'))
    return { host: named, port: port ? (/^\d+$/.test(port) ? Number(port) : Number.NaN) : DEFAULT_PORT }
  } catch {
    return null
  }
}
