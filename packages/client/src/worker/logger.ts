export type LogFields = Record<string, unknown>

/** Where the worker says what it does; `console` is one, and so are the usual loggers that take a message first. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}
