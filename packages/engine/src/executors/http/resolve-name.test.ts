import { createSocket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import { dnsResolver } from './resolve-name.ts'

const A = 1
const AAAA = 28

type Zone = Record<string, { ipv4?: number[]; ipv6?: number[] } | 'silent'>

/** A name server for one zone: it says nothing about silent names, and that others do not exist. */
async function startNameServer(zone: Zone): Promise<string> {
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const answer = answerTo(query, zone)
    if (answer) socket.send(answer, from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => void socket.close())
  return `127.0.0.1:${socket.address().port}`
}

function answerTo(query: Buffer, zone: Zone): Buffer | null {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = query.readUInt16BE(at + 1)
  const known = zone[labels.join('.').toLowerCase()]
  if (known === 'silent') return null
  const address = type === A ? known?.ipv4 : type === AAAA ? known?.ipv6 : undefined
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(known ? 0x8180 : 0x8183, 2)
  header.writeUInt16BE(address ? 1 : 0, 6)
  header.writeUInt32BE(0, 8)
  const question = query.subarray(12, at + 5)
  if (!address) return Buffer.concat([header, question])
  const record = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, address.length, ...address])
  return Buffer.concat([header, question, record])
}

const IPV6 = [0x20, 0x01, 0x48, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]

test('a name has the addresses of both families', async () => {
  const zone: Zone = {
    'both.example': { ipv4: [192, 0, 2, 1], ipv6: IPV6 },
    'four.example': { ipv4: [192, 0, 2, 2] },
    'six.example': { ipv6: IPV6 },
    'none.example': {},
  }
  const resolve = dnsResolver({ servers: [await startNameServer(zone)] })
  expect(await resolve('both.example')).toEqual([
    { address: '192.0.2.1', family: 4 },
    { address: '2001:4860::1', family: 6 },
  ])
  expect(await resolve('four.example')).toEqual([{ address: '192.0.2.2', family: 4 }])
  expect(await resolve('six.example')).toEqual([{ address: '2001:4860::1', family: 6 }])
  await expect(resolve('none.example')).rejects.toThrow('ENODATA')
  await expect(resolve('missing.example')).rejects.toThrow('ENOTFOUND')
})

test('names whose servers are silent do not hold up others', async () => {
  const zone: Zone = { 'good.example': { ipv4: [192, 0, 2, 1] } }
  for (let i = 0; i < 20; i++) zone[`silent-${i}.example`] = 'silent'
  const resolve = dnsResolver({ servers: [await startNameServer(zone)], timeoutMs: 200 })
  let pending = 20
  const silent = Array.from({ length: 20 }, (_, i) =>
    resolve(`silent-${i}.example`)
      .catch((error: Error) => error.message)
      .finally(() => pending--),
  )
  expect(await resolve('good.example')).toEqual([{ address: '192.0.2.1', family: 4 }])
  expect(pending).toBeGreaterThan(0)
  expect(await Promise.all(silent)).toContainEqual(expect.stringContaining('ETIMEOUT'))
})
