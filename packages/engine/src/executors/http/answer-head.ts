/** What came is not an answer as HTTP/1.1 has it. */
export class BrokenAnswer extends Error {}

/** The head of an answer, understood. Many calls may share one: a target says the same thing again and again. */
export interface AnswerHead {
  readonly statusCode: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** The target keeps the connection open, as far as its headers say. */
  readonly keepsAlive: boolean
  /** So long it does while nothing is sent; null: it did not say. */
  readonly keepAliveMs: number | null
  /** Of the body, if it says. */
  readonly length: number | null
  /** The last of these tells where the body ends. */
  readonly coding: string | null
  /** What is kept of the headers, as JSON, once somebody has asked. */
  kept: string | null
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?$/
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const LENGTH = /^\d{1,15}$/
const TIMEOUT = /(?:^|[\s,])timeout=(\d{1,6})/i

export function readHead(text: string): AnswerHead {
  const [first = '', ...lines] = text.split('\r\n')
  const status = STATUS_LINE.exec(first)
  if (status === null) throw new BrokenAnswer('the answer is not HTTP/1.1')
  const headers = headersOf(lines)
  let length: string | null = null
  let coding: string | null = null
  let keepsAlive = status[1] === '1'
  let keepAliveMs: number | null = null
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] as string
    switch ((headers[i] as string).toLowerCase()) {
      case 'content-length':
        if (length !== null || !LENGTH.test(value)) throw new BrokenAnswer('the answer has no usable length')
        length = value
        break
      case 'transfer-encoding':
        coding = coding === null ? value : `${coding}, ${value}`
        break
      case 'connection':
        keepsAlive = wordsKeepAlive(value.toLowerCase()) ?? keepsAlive
        break
      case 'keep-alive':
        keepAliveMs = Number(TIMEOUT.exec(value)?.[1] ?? Number.NaN) * 1_000 || null
    }
  }
  const statusCode = Number(status[2])
  return {
    ...{ statusCode, headers, keepsAlive, keepAliveMs, coding },
    length: length === null ? null : Number(length),
    kept: null,
  }
}

function wordsKeepAlive(words: string): boolean | null {
  if (words.includes('close')) return false
  return words.includes('keep-alive') ? true : null
}

/** Names and values in turn. A line that goes on with a space belongs to the one before it. */
function headersOf(lines: readonly string[]): string[] {
  const headers: string[] = []
  for (const line of lines) {
    if (/[\r\n\0]/.test(line)) throw new BrokenAnswer('a header of the answer holds what no header can')
    if ((line.startsWith(' ') || line.startsWith('\t')) && headers.length > 0) {
      headers.push(`${headers.pop()} ${line.trim()}`)
      continue
    }
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    if (!NAME.test(name)) throw new BrokenAnswer('a header of the answer has no name')
    headers.push(name, line.slice(colon + 1).trim())
  }
  return headers
}
