import { LineCounter, parseAllDocuments, type Tags } from 'yaml'
import { isRecord, NotTaken } from './entry.ts'

export type K8sDocument = { place: string; resource: Record<string, unknown> } | { place: string; problem: string }

/** YAML 1.1, in which `yes` is true; what looks like a date stays a text. */
const AS_KUBERNETES = {
  version: '1.1',
  customTags: (tags: Tags) =>
    tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:timestamp'),
} as const

/** No resource is as deep. The parser goes down by calls, and far below this the process would die of it. */
const MAX_DEPTH = 500
const DEEP_DASHES = new RegExp(`(?:^|\\n)\\s*(?:- +){${MAX_DEPTH}}`)

const LISTS = /^(List|CronJobList)$/

/** Everything in a file of one or more YAML documents (JSON is YAML too), lists opened. A bad one does not stop the others. */
export function readK8sDocuments(text: string): K8sDocument[] {
  if (isTooDeep(text)) throw new NotTaken(`it is nested more than ${MAX_DEPTH} levels deep`)
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, { ...AS_KUBERNETES, lineCounter, prettyErrors: false })
  return [...documents].flatMap((document, index): K8sDocument[] => {
    const place = documents.length === 1 ? 'the document' : `document ${index + 1}`
    const [error] = document.errors
    if (error !== undefined)
      return [
        {
          place: `${place}, line ${lineCounter.linePos(error.pos[0]).line}`,
          problem: `it is no YAML: ${error.message}`,
        },
      ]
    let value: unknown
    try {
      value = document.toJS({ maxAliasCount: 100 })
    } catch (error) {
      return [{ place, problem: (error as Error).message }]
    }
    // Between separators there may be nothing but comments.
    return value === null ? [] : opened(place, value)
  })
}

function opened(place: string, value: unknown): K8sDocument[] {
  if (!isRecord(value)) return [{ place, problem: 'it is no resource: there is no apiVersion and no kind' }]
  if (!LISTS.test(String(value.kind)) || !Array.isArray(value.items)) return [{ place, resource: value }]
  return value.items.flatMap((item: unknown, index) => opened(`${place}, item ${index + 1}`, item))
}

/** Brackets in texts count too, which only matters if hundreds are never closed. */
function isTooDeep(text: string): boolean {
  let depth = 0
  for (const [bracket] of text.matchAll(/[[\]{}]/g)) {
    depth = bracket === '[' || bracket === '{' ? depth + 1 : Math.max(0, depth - 1)
    if (depth > MAX_DEPTH) return true
  }
  return DEEP_DASHES.test(text)
}
