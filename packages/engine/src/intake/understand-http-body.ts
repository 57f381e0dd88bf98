import { type Complaints, isRecord, isStorable, join, unstorable } from '../input/read-fields.ts'
import type { HttpTarget } from '../job/definition.ts'
import { complainAboutSize, copyPayload, isPlainJson } from './understand-payload.ts'
import { complainAboutTemplates } from './understand-templates.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A text is itself, `{ base64 }` is bytes, everything else is JSON. */
export function readHttpBody(complaints: Complaints, path: string, value: unknown): HttpTarget['body'] {
  if (typeof value === 'string') return readTextBody(complaints, path, value)
  if (isRecord(value) && Object.keys(value).length === 1 && typeof value.base64 === 'string') {
    return readBytes(complaints, `${path}.base64`, value.base64)
  }
  const json = isPlainJson(value) ? value : copyPayload(complaints, path, value)
  complainAboutJson(complaints, path, json)
  return { json }
}

function readTextBody(complaints: Complaints, path: string, text: string): HttpTarget['body'] {
  complainAboutSize(complaints, path, text)
  if (!isStorable(text)) complaints.add(path, unstorable(text))
  complainAboutTemplates(complaints, path, text)
  return { text }
}

function readBytes(complaints: Complaints, path: string, base64: string): HttpTarget['body'] {
  complainAboutSize(complaints, path, base64)
  if (!BASE64.test(base64)) return complaints.add(path, 'is not base64 (RFC 4648, with padding)')
  return { base64 }
}

function complainAboutJson(complaints: Complaints, path: string, value: unknown): void {
  if (typeof value === 'string') complainAboutTemplates(complaints, path, value)
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) complainAboutJson(complaints, `${path}[${index}]`, item)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) complainAboutJson(complaints, join(path, key), member)
  }
}
