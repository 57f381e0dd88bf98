export type LogFields = Record<string, unknown>

/** Where Belfry says what it does. Messages are whole sentences or phrases; what varies goes into the fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

const nothing = () => {}

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** One readable line per message: `warn  the database went away  code=57P01 waitMs=250`. */
export function lineLogger(write: (line: string) => void): Logger {
  const at = (level: string) => (message: string, fields?: LogFields) =>
    write(`${level.padEnd(5)} ${onOneLine(message)}${fields ? describe(fields) : ''}`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function describe(fields: LogFields): string {
  const parts = Object.entries(fields).map(([name, value]) => `${name}=${readable(value)}`)
  return parts.length === 0 ? '' : `  ${parts.join(' ')}`
}

function readable(value: unknown): string {
  if (value instanceof Error) return quoted(value.message)
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'bigint') return String(value)
  try {
    return onOneLine(JSON.stringify(value) ?? String(value))
  } catch {
    // A field that cannot be shown (a cycle) must not take down whoever logs it.
    return '[unprintable]'
  }
}

function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text)
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n]+\s*/g, ' ')
}
