import { isIPv4, isIPv6 } from 'node:net'

/** Ranges of IPv4 in which nothing lies that a stranger may call: IANA's special-purpose registry, and one cloud's host agent. */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's host agent answers here, on an address that is public otherwise.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
].map(([base, bits]) => ({
  base: ipv4Number(base as string),
  mask: bits === 0 ? 0 : (-1 << (32 - (bits as number))) >>> 0,
}))

/** Whether an address belongs to the public internet. What cannot be read as an address does not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return isPublicIpv4(ipv4Number(address))
  const percent = address.indexOf('%')
  const plain = percent === -1 ? address : address.slice(0, percent)
  return isIPv6(plain) && isPublicIpv6(ipv6Groups(plain))
}

/** Where clouds hand out the machine's own credentials: no development needs a job that calls there. */
const METADATA_IPV4 = [
  { base: ipv4Number('169.254.0.0'), mask: 0xffff0000 },
  { base: ipv4Number('100.100.100.200'), mask: 0xffffffff },
  { base: ipv4Number('168.63.129.16'), mask: 0xffffffff },
]

export function isMetadataAddress(address: string): boolean {
  if (isIPv4(address)) return isMetadataIpv4(ipv4Number(address))
  const plain = address.split('%')[0] as string
  if (!isIPv6(plain)) return false
  const groups = ipv6Groups(plain)
  const [first = 0, second = 0] = groups
  if ((first & 0xffc0) === 0xfe80 || (first === 0xfd00 && second === 0xec2)) return true
  const holdsIpv4 =
    groups.slice(0, 5).every((group) => group === 0) || (first === 0x64 && second === 0xff9b) || first === 0x2002
  return holdsIpv4 && isMetadataIpv4(ipv4At(groups, first === 0x2002 ? 1 : 6))
}

const isMetadataIpv4 = (number: number): boolean =>
  METADATA_IPV4.some(({ base, mask }) => (number & mask) >>> 0 === base)

function isPublicIpv4(number: number): boolean {
  return !SPECIAL_IPV4.some(({ base, mask }) => (number & mask) >>> 0 === base)
}

/**
 * Of IPv6 only global unicast is public, and of that not what is set aside; an IPv4 address inside counts as itself, so
 * that no translator or tunnel carries a call to where it could not go directly.
 */
function isPublicIpv6(groups: readonly number[]): boolean {
  const [first = 0, second = 0, third = 0] = groups
  if (first === 0x64 && second === 0xff9b) {
    // 64:ff9b::/96 translates to any IPv4; 64:ff9b:1::/48 is for local use.
    return groups.slice(2, 6).every((group) => group === 0) && isPublicIpv4(ipv4At(groups, 6))
  }
  if ((first & 0xe000) !== 0x2000) return false
  if (first === 0x2002) return isPublicIpv4(ipv4At(groups, 1))
  if (first === 0x2001 && second === 0) {
    // Teredo: its server in the clear, its client with every bit turned.
    return isPublicIpv4(ipv4At(groups, 2)) && isPublicIpv4(~ipv4At(groups, 6) >>> 0)
  }
  if (first === 0x2001 && second < 0x200) return false
  if (first === 0x2001 && second === 0xdb8) return false
  if (first === 0x2620 && second === 0x4f && third === 0x8000) return false
  return !(first === 0x3fff && second < 0x1000)
}

function ipv4Number(address: string): number {
  return address.split('.').reduce((number, part) => number * 256 + Number(part), 0)
}

function ipv4At(groups: readonly number[], index: number): number {
  return (groups[index] ?? 0) * 65_536 + (groups[index + 1] ?? 0)
}

/** The eight groups of a valid address. */
function ipv6Groups(address: string): number[] {
  const [head = '', tail] = address.split('::')
  const left = groupsOf(head)
  if (tail === undefined) return left
  const right = groupsOf(tail)
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
}

function groupsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const number = ipv4Number(part)
    return [number >>> 16, number & 0xffff]
  })
}
