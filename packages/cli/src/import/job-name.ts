import { createHash } from 'node:crypto'

const READABLE = 40

/** A name that the same command always gets, and no other one: its words for people, its hash for certainty. */
export function nameOfCommand(prefix: string, command: string): string {
  const words = command
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, READABLE)
    .replaceAll(/^-+|-+$/g, '')
  const hash = createHash('sha256').update(command).digest('hex').slice(0, 8)
  return [`${prefix}/${words}`, hash].join(words === '' ? '' : '-')
}

/** The second of the same name gets `-2`, in the order of the file, and so on. */
export class Names {
  readonly #count = new Map<string, number>()

  take(name: string): string {
    const count = (this.#count.get(name) ?? 0) + 1
    this.#count.set(name, count)
    return count === 1 ? name : `${name}-${count}`
  }
}
