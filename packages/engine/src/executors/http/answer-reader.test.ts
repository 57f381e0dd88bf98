import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AnswerHead, BrokenAnswer } from './answer-head.ts'
import { AnswerReader } from './answer-reader.ts'

interface Heard {
  statusCode: number
  headers: string[]
  body: string
  isComplete: boolean
  keepsAlive: boolean
}

/** Reads an answer in these pieces; the target then closes the connection if it is not complete. */
function read(pieces: readonly Buffer[], method = 'POST', maxBytes = Number.POSITIVE_INFINITY): Heard {
  const heard: Heard = { statusCode: 0, headers: [], body: '', isComplete: false, keepsAlive: false }
  const reader = new AnswerReader()
  const listener = {
    onHead({ statusCode, headers }: AnswerHead) {
      expect(heard.statusCode, 'headers come once').toBe(0)
      Object.assign(heard, { statusCode, headers })
    },
    onData(chunk: Buffer) {
      expect(chunk.length).toBeGreaterThan(0)
      heard.body += chunk.toString('latin1')
      return heard.body.length <= maxBytes
    },
  }
  reader.begin(listener, { method })
  for (const piece of pieces) {
    const isComplete = reader.read(piece)
    // As the next piece does that comes in, on whatever connection.
    piece.fill('#')
    if (!isComplete) continue
    heard.isComplete = true
    break
  }
  heard.isComplete ||= reader.end()
  heard.keepsAlive = reader.keepsAlive
  return heard
}

const readText = (text: string, method?: string): Heard => read([Buffer.from(text, 'latin1')], method)

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % bytes.length))].sort((a, b) => a - b)
  return [0, ...ends]
    .map((from, i) => bytes.subarray(from, ends[i] ?? bytes.length))
    .filter((piece) => piece.length > 0)
}

const token = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,12}$/).map((name) => `x-${name}`)
const value = fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/)
const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const chunkedText = (text: string, sizes: readonly number[]): string => {
  let [rest, out] = [text, '']
  for (let i = 0; rest.length > 0; i++) {
    const size = Math.max(1, sizes[i % sizes.length] ?? 7)
    out += `${rest.slice(0, size).length.toString(16)}${i % 2 ? ';ext=1' : ''}\r\n${rest.slice(0, size)}\r\n`
    rest = rest.slice(size)
  }
  return `${out}0\r\n${sizes.length % 2 ? 'x-trailer: 1\r\n' : ''}\r\n`
}

test('an answer is the same in whatever pieces it comes', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(200, 201, 302, 404, 500),
      fc.array(fc.tuple(token, value), { maxLength: 5 }),
      body,
      fc.constantFrom('length', 'chunks', 'close'),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      fc.boolean(),
      (status, given, text, framing, sizes, places, hint) => {
        const headers = given.map(([name, held]) => `${name}: ${held}\r\n`).join('')
        const length = framing === 'length' ? `Content-Length: ${text.length}\r\n` : ''
        const encoding = framing === 'chunks' ? 'transfer-encoding: Chunked\r\n' : ''
        const written = framing === 'chunks' ? chunkedText(text, sizes) : text
        const early = hint ? 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n' : ''
        const whole = `${early}HTTP/1.1 ${status} Said so\r\n${headers}${length}${encoding}\r\n${written}`
        const heard = read(cut(Buffer.from(whole, 'latin1'), places))
        expect(heard).toMatchObject({ statusCode: status, body: text, isComplete: true })
        expect(heard.headers.slice(0, given.length * 2)).toEqual(given.flat())
        expect(heard.keepsAlive).toBe(framing !== 'close')
      },
    ),
    { numRuns: 500 },
  )
})

test('whatever a target sends, it is an answer, an unfinished one, or a broken one', () => {
  const seed = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(), fc.constantFrom('', '\r', '\n', '\0', ' ', ':', 'x', '9', '\r\n', '\xff')), {
        maxLength: 8,
      }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (changes, places) => {
        let text = seed
        for (const [place, by] of changes) {
          const at = place % text.length
          text = text.slice(0, at) + by + text.slice(at + 1)
        }
        try {
          read(cut(Buffer.from(text, 'latin1'), places))
        } catch (error) {
          expect(error).toBeInstanceOf(BrokenAnswer)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})

const OK = 'HTTP/1.1 200 OK\r\n'
test.each([
  ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['another version', 'HTTP/2 200 OK\r\n\r\n'],
  ['a status that is none', 'HTTP/1.1 99 Odd\r\n\r\n'],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n'],
  ['two lengths', `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\na`],
  ['a length that is none', `${OK}content-length: -1\r\n\r\n`],
  ['a length with a sign', `${OK}content-length: +1\r\n\r\na`],
  ['a length and chunks', `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a header without a name', `${OK}: nothing\r\n\r\n`],
  ['a header with a space in its name', `${OK}content-length : 1\r\n\r\na`],
  ['a header without a colon', `${OK}nothing\r\n\r\n`],
  ['a bare line feed in a header', `${OK}a: b\nc: d\r\n\r\n`],
  ['a NUL in a header', `${OK}a: b\0\r\n\r\n`],
  ['a head without end', `${OK}a: ${'x'.repeat(20_000)}`],
  ['a chunk without a size', `${OK}transfer-encoding: chunked\r\n\r\nhello\r\n`],
  ['a chunk with a negative size', `${OK}transfer-encoding: chunked\r\n\r\n-1\r\n`],
  ['a chunk that is longer than it says', `${OK}transfer-encoding: chunked\r\n\r\n1\r\nhello\r\n0\r\n\r\n`],
  ['a chunk with an endless size', `${OK}transfer-encoding: chunked\r\n\r\n${'0'.repeat(2_000)}`],
])('%s is a broken answer', (_, text) => {
  expect(() => readText(text)).toThrow(BrokenAnswer)
})

test('twenty thousand tiny headers are refused after the first 16 KiB', () => {
  const head = Buffer.from(`${OK}${'a:\r\n'.repeat(20_000)}\r\n`)
  expect(() => read([head.subarray(0, 20_000), head.subarray(20_000)])).toThrow(BrokenAnswer)
})

test('some answers have no body, whatever their length says', () => {
  expect(readText(`${OK}content-length: 5\r\n\r\n`, 'HEAD')).toMatchObject({ isComplete: true, body: '' })
  expect(readText('HTTP/1.1 204 No Content\r\n\r\n')).toMatchObject({ isComplete: true, keepsAlive: true })
  expect(readText('HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n')).toMatchObject({ isComplete: true })
})

test('a connection is used again only if both sides know where the answer ended', () => {
  const length = 'content-length: 0\r\n'
  expect(readText(`${OK}${length}\r\n`).keepsAlive).toBe(true)
  expect(readText(`${OK}${length}Connection: Close\r\n\r\n`).keepsAlive).toBe(false)
  expect(readText(`HTTP/1.0 200 OK\r\n${length}\r\n`).keepsAlive).toBe(false)
  expect(readText(`HTTP/1.0 200 OK\r\n${length}connection: keep-alive\r\n\r\n`).keepsAlive).toBe(true)
  expect(readText(`${OK}${length}\r\nHTTP/1.1 200 OK\r\n`).keepsAlive).toBe(false)
  expect(readText(`${OK}\r\nuntil the end`)).toMatchObject({
    keepsAlive: false,
    isComplete: true,
    body: 'until the end',
  })
})

test('an answer that is cut off is not complete', () => {
  for (const text of ['', 'HTTP/1.1 20', OK, `${OK}content-length: 5\r\n\r\nhell`]) {
    expect(readText(text).isComplete, JSON.stringify(text)).toBe(false)
  }
  const chunks = `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`
  expect(readText(chunks).isComplete).toBe(false)
})

test('nobody reads more than is wanted', () => {
  const pieces = [Buffer.from(`${OK}content-length: 100\r\n\r\n${'a'.repeat(40)}`), Buffer.from('b'.repeat(60))]
  expect(read(pieces, 'POST', 20)).toMatchObject({ isComplete: true, body: 'a'.repeat(40), keepsAlive: false })
})

test('each answer of a connection is read for itself, also if it begins as the last one did', () => {
  const reader = new AnswerReader()
  const heads: AnswerHead[] = []
  const bodies: string[] = []
  const answer = (method: string, text: string): boolean => {
    bodies.push('')
    const listener = {
      onHead: (head: AnswerHead) => void heads.push(head),
      onData(chunk: Buffer) {
        bodies.push(`${bodies.pop()}${chunk}`)
        return true
      },
    }
    reader.begin(listener, { method })
    return reader.read(Buffer.from(text))
  }
  const five = `${OK}content-length: 5\r\n\r\n`
  expect(answer('POST', `${five}first`)).toBe(true)
  expect(answer('HEAD', five)).toBe(true)
  expect(answer('POST', `${five}third`)).toBe(true)
  expect(answer('POST', `${OK}content-length: 6\r\nconnection: close\r\n\r\nfourth`)).toBe(true)
  expect(bodies).toEqual(['first', '', 'third', 'fourth'])
  expect(heads.map(({ length }) => length)).toEqual([5, 5, 5, 6])
  expect(reader.keepsAlive).toBe(false)
})
