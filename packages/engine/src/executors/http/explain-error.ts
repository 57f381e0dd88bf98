import { STATUS_CODES } from 'node:http'
import { CallFailed } from './call-failed.ts'
import type { Exchange } from './exchange.ts'

/** A broken exchange as a failure with a class. */
export function explainBreak({ broken, error, head }: Exchange): CallFailed {
  if (broken === 'timeout') {
    const part = head === null ? 'no answer' : 'no complete answer'
    return new CallFailed('timeout', `${part} within the timeout`, { retryable: true })
  }
  if (broken === 'canceled') return new CallFailed('canceled', 'the run was canceled', { retryable: false })
  if (error instanceof CallFailed) return error
  return new CallFailed('network', messageOf(error), { retryable: true })
}

export function statusLine(statusCode: number): string {
  const words = STATUS_CODES[statusCode]
  return words === undefined ? `HTTP ${statusCode}` : `HTTP ${statusCode} ${words}`
}

/** A failure to connect to one of several addresses says nothing itself; its parts do. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  const code = codeOf(error)
  const message = error.message || error.name
  return code === undefined || message.includes(code) ? message : `${code}: ${message}`
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
