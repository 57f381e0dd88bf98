/**
 * JSON with sorted keys, so that two requests that say the same are the same text, whatever order their keys came in.
 * Takes plain JSON of bounded depth; what is undefined is left out.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const record = value as Record<string, unknown>
  const members: string[] = []
  for (const key of Object.keys(record).sort()) {
    if (record[key] !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`)
  }
  return `{${members.join(',')}}`
}
