/** The address of a route: `/v1/jobs/{jobId}` with its parts filled in, and its query. */
export function addressOf(template: string, path: object = {}, query: object = {}): string {
  const parts = path as Record<string, unknown>
  const filled = template.replace(/\{(\w+)\}/g, (_all, name: string) => segmentOf(name, parts[name]))
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  if (pairs.length === 0) return filled
  return `${filled}?${new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, textOf(value)]))}`
}

/** An empty or dotted part would name another route: it is refused here, where its name is known. */
function segmentOf(name: string, value: unknown): string {
  const text = value === undefined || value === null ? '' : textOf(value)
  if (text === '' || text === '.' || text === '..')
    throw new TypeError(`${name} must be a name or an id, not '${text}'`)
  return encodeURIComponent(text)
}

const textOf = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value))
