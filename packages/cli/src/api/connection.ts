import { readAdminKey } from '../start/admin-key.ts'
import type { Environment } from '../start/start-options.ts'
import { UsageError } from '../usage-error.ts'

export interface Connection {
  /** Without a slash at its end. */
  url: string
  key: string
}

/** Where the node is, and who asks. */
export async function readConnection(environment: Environment): Promise<Connection> {
  const url = readUrl(environment.BELFRY_URL || 'http://127.0.0.1:8080')
  return { url, key: environment.BELFRY_API_KEY || environment.BELFRY_ADMIN_KEY || (await keptKey(url, environment)) }
}

function readUrl(text: string): string {
  const expected = 'must look like http://127.0.0.1:8080'
  if (!URL.canParse(text)) throw new UsageError(`BELFRY_URL is not a URL; it ${expected}`)
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new UsageError(`BELFRY_URL ${expected}; a key belongs into BELFRY_API_KEY`)
  return url.href.replace(/\/+$/, '')
}

/** The key of the node that was started here. It is shown to no other machine. */
async function keptKey(url: string, environment: Environment): Promise<string> {
  const dataDir = environment.BELFRY_DATA_DIR || '.belfry'
  if (!isLoopback(new URL(url).hostname)) {
    throw new UsageError(`BELFRY_API_KEY is not set, and ${url} needs one (the admin key kept here stays here)`)
  }
  const key = await readAdminKey(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error instanceof UsageError) throw error
    throw new UsageError(`the admin key in ${dataDir} cannot be read (${error.code}); set BELFRY_API_KEY`)
  })
  if (key !== null) return key
  throw new UsageError(
    `there is no API key: set BELFRY_API_KEY, or let BELFRY_DATA_DIR name the data directory of a node (${dataDir} has no admin key)`,
  )
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)
