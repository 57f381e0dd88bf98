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
  const { code, title, detail } = body as { code: string; title?: unknown; detail?: unknown }
  const says = typeof detail === 'string' ? detail : String(title ?? code)
  const complaints = Array.isArray(body.errors) ? body.errors.filter(isComplaint) : []
  const [only] = complaints
  if (only === undefined || (complaints.length === 1 && tells(says, only)))
    return new Problem(`${says} (${code})`, { status, code })
  // The detail is the first complaint; all of them stand below.
  const head = complaints.length > 1 && typeof title === 'string' ? title : says
  return new Problem([`${head} (${code})`, ...complaints.map(lineOf)].join('\n'), { status, code })
}

function lineOf({ path, message, suggestion }: Complaint): string {
  const hint = suggestion === undefined || message.includes(suggestion) ? '' : `; did you mean ${suggestion}?`
  return `  ${path ? `${path}: ` : ''}${message}${hint}`
}

const tells = (detail: string, { message, suggestion }: Complaint): boolean =>
  detail.includes(message) && (suggestion === undefined || detail.includes(suggestion))

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
