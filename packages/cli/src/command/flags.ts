import { UsageError } from '../usage-error.ts'

export interface Flag {
  /** What stands for its value in the help; a flag without one is a switch. */
  value?: string
  about: string
  multiple?: true
}

export type FlagTable = Readonly<Record<string, Flag>>

/** What was given, asked for by name; names that the command does not declare are a mistake in the command. */
export class Flags {
  readonly #given: ReadonlyMap<string, readonly string[]>

  constructor(given: ReadonlyMap<string, readonly string[]>) {
    this.#given = given
  }

  is(name: string): boolean {
    return this.#given.has(name)
  }

  text(name: string): string | undefined {
    return this.#given.get(name)?.[0]
  }

  all(name: string): readonly string[] {
    return this.#given.get(name) ?? []
  }

  /** Whether a number is allowed there is the server's to say; that it is one is ours. */
  number(name: string): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    if (/^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
    throw new UsageError(`--${name} is ${JSON.stringify(text)}, but must be a number`)
  }

  json(name: string): unknown {
    const text = this.text(name)
    if (text === undefined) return undefined
    try {
      return JSON.parse(text)
    } catch {
      throw new UsageError(`--${name} is not JSON; a text needs its own quotes, as in --${name} '"hello"'`)
    }
  }
}

/** Drops what is not set, so that the server fills in its defaults. */
export function given<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
}
