/** What frameworks have headers in: `Headers`, or an object whose names may be of any case. */
export type HeadersLike =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** `name` is in lower case. An empty header is none. */
export function headerOf(headers: HeadersLike, name: string): string | null {
  const value = typeof headers.get === 'function' ? headers.get(name) : fieldOf(headers as Fields, name)
  const text = Array.isArray(value) ? value.join(', ') : value
  return typeof text === 'string' && text !== '' ? text : null
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>

function fieldOf(fields: Fields, name: string): string | readonly string[] | undefined {
  // Node has them in lower case already; gateways that call functions often do not.
  const exact = fields[name]
  if (exact !== undefined) return exact
  const key = Object.keys(fields).find((one) => one.toLowerCase() === name)
  return key === undefined ? undefined : fields[key]
}
