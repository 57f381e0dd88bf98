import { isIP } from 'node:net'
import { isMetadataAddress, isPublicAddress } from './ip-address.ts'

/** Ports of services that would take an HTTP request for commands of their own; browsers refuse the same. */
const REFUSED_PORTS = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109],
  ...[
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
  ],
  ...[532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060],
  ...[5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
])

const LOCAL_NAMES = new Set(['localhost', 'localhost.localdomain', 'ip6-localhost', 'ip6-loopback'])
const METADATA_NAMES = new Set([
  ...['metadata.google.internal', 'metadata.goog', 'instance-data', 'instance-data.ec2.internal'],
])

/**
 * Keeps calls away from what only this machine or its network can reach. A URL is judged as it is written, every address
 * a name resolves to is judged before it is connected to, and the connected socket's address once more; so neither a name
 * that changes its mind nor an odd spelling of an address gets through. Private targets may be allowed, for development; where
 * clouds keep the machine's credentials may not.
 */
export class AddressGuard {
  readonly #allowsPrivate: boolean

  constructor({ allowPrivateTargets }: { allowPrivateTargets: boolean }) {
    this.#allowsPrivate = allowPrivateTargets
  }

  /** Why the URL may not be called, as far as it says so itself. */
  refusalOfUrl({ protocol, hostname, port }: URL): string | null {
    if (protocol !== 'http:' && protocol !== 'https:') return `the scheme ${protocol} is not http or https`
    if (port !== '' && REFUSED_PORTS.has(Number(port))) return `the port ${port} belongs to another protocol`
    return this.refusalOfHost(hostname)
  }

  refusalOfHost(hostname: string): string | null {
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
    if (host === '') return 'the host is empty'
    if (isIP(host) !== 0) return this.refusalOfAddress(host)
    const isLocal = !this.#allowsPrivate && (LOCAL_NAMES.has(host) || host.endsWith('.localhost'))
    return isLocal || METADATA_NAMES.has(host) ? `${host} is not a public host` : null
  }

  refusalOfAddress(address: string): string | null {
    const isAllowed = this.#allowsPrivate ? !isMetadataAddress(address) : isPublicAddress(address)
    return isAllowed ? null : `${address} is not a public address`
  }
}
