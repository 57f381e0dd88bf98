/** What a node allows at most; docs/reference/jobs.md has them all. A tenant may be allowed less. */
const MAX_NAME = 255
const MAX_PAYLOAD_BYTES = 262_144
const MAX_DEPTH = 100
const MAX_LABELS = 64
const MAX_LABEL = { name: 128, value: 256 }

interface Sized {
  payload?: unknown
  labels?: Readonly<Record<string, string>>
}

/** Why no node would take a job, whatever its schedule is: so that a dry run says it too. */
export function tooLarge(name: string, { payload, labels = {} }: Sized): string | null {
  if (name.length > MAX_NAME) return `its name would have ${name.length} characters; ${MAX_NAME} are allowed`
  if (isDeeperThan(MAX_DEPTH, payload)) return `its payload would be more than ${MAX_DEPTH} levels deep`
  const bytes = Buffer.byteLength(JSON.stringify(payload) ?? '')
  if (bytes > MAX_PAYLOAD_BYTES)
    return `its payload would have ${bytes} bytes as JSON; ${MAX_PAYLOAD_BYTES} are allowed`
  const all = Object.entries(labels)
  if (all.length > MAX_LABELS)
    return `it would have ${all.length} labels, imported-from among them; ${MAX_LABELS} are allowed`
  const long = all.find(([label, value]) => label.length > MAX_LABEL.name || value.length > MAX_LABEL.value)
  if (long === undefined) return null
  return `its label ${long[0]} is too long: a name may have ${MAX_LABEL.name} characters, a value ${MAX_LABEL.value}`
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member))
}
