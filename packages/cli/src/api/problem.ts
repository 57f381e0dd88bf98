interface Complaint {
  path: string
  message: string
  suggestion?: string
}

/** Why a node refused, or could not be asked; the message is all that a person needs. */
export class Problem extends Error {
  /** 0: there was no answer. */
  readonly status: number
  readonly code: string

  constructor(message: string, { status = 0, code = 'no_answer' }: { status?: number; code?: string } = {}) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Reads a problem+json; whatever else answers (a proxy, another program) is shown as it is, shortened. */
export function problemOf(status: number, text: string): Problem {
  const body = parse(text)
  if (typeof body?.code !== 'string') {
    const said = text.trim().replaceAll(/\s+/g, ' ').slice(0, 200)
    return new Problem(`the server answered ${status}${said ? `: ${said}` : ''}; is it a Belfry node?`, { status })
  }
  const code = body.code
  const detail = typeof body.detail === 'string' ? body.detail : String(body.title ?? code)
  const complaints = Array.isArray(body.errors) ? body.errors.filter(isComplaint) : []
  const lines = complaints.map(({ path, message, suggestion }) => {
    const hint = suggestion === undefined || message.includes(suggestion) ? '' : `; did you mean ${suggestion}?`
    return `  ${path ? `${path}: ` : ''}${message}${hint}`
  })
  // With one complaint the detail says it already.
  const repeats = complaints.length === 1 && lines[0] !== undefined && detail.includes(complaints[0]?.message ?? '\0')
  const shown = repeats && (complaints[0]?.suggestion === undefined || detail.includes(complaints[0].suggestion))
  return new Problem([`${detail} (${code})`, ...(shown ? [] : lines)].join('\n'), { status, code })
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

const isComplaint = (value: unknown): value is Complaint =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as Complaint).path === 'string' &&
  typeof (value as Complaint).message === 'string'
