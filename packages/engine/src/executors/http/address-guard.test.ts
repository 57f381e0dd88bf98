import { expect, test } from 'vitest'
import { callTo, performed, startCaller } from '../../../test/http-target.ts'
import { AddressGuard } from './address-guard.ts'
import { isPublicAddress } from './ip-address.ts'

/** URLs that must never lead to a request, whatever form the address is written in. */
const HOSTILE = [
  // Loopback, in every spelling that a URL parser or a resolver knows
  'http://127.0.0.1/',
  'http://127.0.0.1:8080/',
  'http://127.1/',
  'http://127.0.1/',
  'http://127.255.255.254/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.0.0.1/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://0177.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://127.0.0.1%2f/',
  'http://%31%32%37.0.0.1/',
  'http://１２７.０.０.１/',
  'http://①②⑦.0.0.1/',
  'http://127。0。0。1/',
  'http://localhost/',
  'http://LOCALHOST/',
  'http://localhost./',
  'http://localhost:3000/',
  'http://app.localhost/',
  'http://a.b.localhost./',
  'http://ｌocalhost/',
  'http://localhost.localdomain/',
  'http://ip6-localhost/',
  'http:\\\\127.0.0.1\\',
  'http:///127.0.0.1/',
  'http://user:pass@127.0.0.1/',
  'http://example.com@127.0.0.1/',
  // This host, and nobody
  'http://0.0.0.0/',
  'http://0/',
  'http://0.1.2.3/',
  'http://00000/',
  'http://255.255.255.255/',
  'http://4294967295/',
  // Private networks
  'http://10.0.0.1/',
  'http://10.255.255.255/',
  'http://167772161/',
  'http://012.0.0.1/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://0xac100001/',
  'http://192.168.0.1/',
  'http://192.168.1/',
  'http://3232235777/',
  'http://0300.0250.1.1/',
  // Metadata services
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/',
  'http://0xa9fea9fe/',
  'http://0251.0376.0251.0376/',
  'http://169.254.43518/',
  'http://metadata.google.internal/computeMetadata/v1/',
  'http://METADATA.google.internal./',
  'http://instance-data/',
  'http://100.100.100.200/',
  'http://168.63.129.16/',
  'http://192.0.0.192/',
  'http://[fd00:ec2::254]/',
  'http://[::ffff:a9fe:a9fe]/',
  // Shared, reserved, documentation, benchmarking, multicast
  'http://100.64.0.1/',
  'http://100.127.255.255/',
  'http://192.0.0.1/',
  'http://192.0.2.1/',
  'http://192.88.99.1/',
  'http://198.18.0.1/',
  'http://198.19.255.255/',
  'http://198.51.100.1/',
  'http://203.0.113.1/',
  'http://224.0.0.1/',
  'http://239.255.255.250/',
  'http://240.0.0.1/',
  // IPv6
  'http://[::]/',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[0000:0000:0000:0000:0000:0000:0000:0001]/',
  'http://[::127.0.0.1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[0:0:0:0:0:ffff:10.0.0.1]/',
  'http://[::ffff:0:127.0.0.1]/',
  'http://[::ffff:8.8.8.8]/',
  'http://[fc00::1]/',
  'http://[fdff:ffff::1]/',
  'http://[fe80::1]/',
  'http://[febf::1]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[100::1]/',
  'http://[2001:db8::1]/',
  'http://[3fff::1]/',
  'http://[2001:2::1]/',
  'http://[2001:10::1]/',
  'http://[5f00::1]/',
  // IPv4 inside IPv6, through translators and tunnels
  'http://[64:ff9b::127.0.0.1]/',
  'http://[64:ff9b::10.0.0.1]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://[64:ff9b:1::1]/',
  'http://[64:ff9b:1::8.8.8.8]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a00:1::1]/',
  'http://[2002:c0a8:101::1]/',
  'http://[2001:0:7f00:1::]/',
  'http://[2001:0:808:808::80ff:fffe]/',
  // Other schemes, and ports that other protocols listen on
  'ftp://example.com/',
  'file:///etc/passwd',
  'gopher://example.com:70/',
  'data:text/plain,hello',
  'javascript:alert(1)',
  'ws://example.com/',
  'unix:/var/run/docker.sock',
  'http://example.com:22/',
  'http://example.com:25/',
  'http://example.com:6667/',
  'http://example.com:0/',
  'https://example.com:6000/',
  'http://[2606:4700::1111]:21/',
  // No address at all
  'http://',
  'http://%00/',
  'http://256.256.256.256/',
  'http://[::1/',
  'http://[fe80::1%25eth0]/',
  'not a url',
  '',
]

test(`none of ${HOSTILE.length} hostile targets is called, and none is tried again`, async () => {
  const asked: string[] = []
  const resolve = async (hostname: string) => {
    asked.push(hostname)
    return [{ address: '127.0.0.1', family: 4 }]
  }
  const deps = startCaller({ allowPrivateTargets: false, resolve })
  for (const url of HOSTILE) {
    const end = await performed(callTo(deps, { url }), deps)
    expect(end, url).toMatchObject({ failureClass: 'invalid_target', retryable: false, written: false, response: null })
  }
  // All of them are refused as they stand, before anybody is asked for an address.
  expect(asked).toEqual([])
})

test('a token endpoint is no way around', async () => {
  const deps = startCaller({ allowPrivateTargets: false, resolve: async () => [{ address: '10.0.0.1', family: 4 }] })
  for (const tokenUrl of [...HOSTILE, 'https://login.example.com/token']) {
    const target = { url: 'https://example.com/', auth: { tokenUrl, clientId: 'a', clientSecret: 'b' } }
    const end = await performed(callTo(deps, target), deps)
    expect(end, tokenUrl).toMatchObject({ failureClass: 'invalid_target', retryable: false, written: false })
  }
})

test.for([
  ['127.0.0.1', 4],
  ['10.1.2.3', 4],
  ['169.254.169.254', 4],
  ['::1', 6],
  ['fd00:ec2::254', 6],
  ['::ffff:127.0.0.1', 6],
  ['64:ff9b::7f00:1', 6],
  ['fe80::1%lo', 6],
  ['nonsense', 4],
] as const)('a name that resolves to %s is not called', async ([address, family]) => {
  const deps = startCaller({ allowPrivateTargets: false, resolve: async () => [{ address, family }] })
  for (const url of ['http://target.example/', 'https://target.example/']) {
    const end = await performed(callTo(deps, { url }), deps)
    expect(end).toMatchObject({ failureClass: 'invalid_target', retryable: false, written: false })
    expect(end).toMatchObject({ error: `target.example resolves to ${address}, which is not a public address` })
  }
})

test('public addresses may be called, and what lies just outside a range is public', () => {
  const addresses = [
    '8.8.8.8',
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
  ]
  addresses.push('128.0.0.1', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255')
  addresses.push('192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255', '2606:4700::1111', '2a00:1450::1')
  addresses.push('2001:4860:4860::8888', '64:ff9b::8.8.8.8', '2002:808:808::1', '2001:0:808:808::f7f7:f7f7')
  expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([])
})

test('in development private addresses may be called; other schemes and ports may not', () => {
  const guard = new AddressGuard({ allowPrivateTargets: true })
  expect(guard.refusalOfUrl(new URL('http://localhost:3000/'))).toBeNull()
  expect(guard.refusalOfUrl(new URL('http://[::1]/'))).toBeNull()
  expect(guard.refusalOfUrl(new URL('ftp://localhost/'))).toContain('scheme')
  expect(guard.refusalOfUrl(new URL('http://localhost:25/'))).toContain('port')
})

test.each([
  'http://169.254.169.254/',
  'http://169.254.170.2/',
  'http://2852039166/',
  'http://0251.0376.0251.0376/',
  'http://[::ffff:169.254.169.254]/',
  'http://[fd00:ec2::254]/',
  'http://[fe80::1]/',
  'http://[64:ff9b::169.254.169.254]/',
  'http://[2002:a9fe:a9fe::1]/',
  'http://100.100.100.200/',
  'http://168.63.129.16/',
  'http://metadata.google.internal/',
  'http://metadata.google.internal./',
])('the credentials of the machine are out of reach in development too: %s', (url) => {
  const guard = new AddressGuard({ allowPrivateTargets: true })
  expect(guard.refusalOfUrl(new URL(url))).toMatch(/is not a public (host|address)/)
})
