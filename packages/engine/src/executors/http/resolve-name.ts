import { lookup, Resolver } from 'node:dns/promises'
import type { Resolve, ResolvedAddress } from './connector.ts'

/** Per server and try; a name whose servers are silent fails within some seconds. */
const TIMEOUT_MS = 2_000
const TRIES = 2

interface DnsOptions {
  /** Default: those of the system. */
  servers?: readonly string[]
  timeoutMs?: number
}

/** The system's own way, with `/etc/hosts` and search domains: for development, where targets have such names. */
export const resolveLikeSystem: Resolve = (hostname) => lookup(hostname, { all: true })

/**
 * Asks the name servers directly. The system's way holds one of few threads for as long as it takes, so that four names
 * with silent servers would stop every other look-up of the process.
 */
export function dnsResolver({ servers, timeoutMs = TIMEOUT_MS }: DnsOptions = {}): Resolve {
  const resolver = new Resolver({ timeout: timeoutMs, tries: TRIES })
  if (servers) resolver.setServers(servers)
  return async (hostname) => {
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const found: ResolvedAddress[] = []
    if (ipv4.status === 'fulfilled') for (const address of ipv4.value) found.push({ address, family: 4 })
    if (ipv6.status === 'fulfilled') for (const address of ipv6.value) found.push({ address, family: 6 })
    if (found.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
    return found
  }
}
