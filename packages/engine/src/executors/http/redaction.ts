/**
 * Takes the values of secrets out of texts that are kept. Values are looked for as they are and as they look inside a URL
 * or a JSON text, longest first, so that no part of a longer one is left.
 */
export class Redaction {
  readonly #forms: [value: string, shown: string][] = []

  add(value: string, shown: string): void {
    if (value === '') return
    for (const form of new Set([value, encodeURIComponent(value.toWellFormed()), JSON.stringify(value).slice(1, -1)])) {
      this.#forms.push([form, shown])
    }
    this.#forms.sort(([a], [b]) => b.length - a.length)
  }

  get isEmpty(): boolean {
    return this.#forms.length === 0
  }

  /** How much must be known behind a place to tell whether a secret begins there. */
  get longestBytes(): number {
    return this.#forms.reduce((longest, [form]) => Math.max(longest, Buffer.byteLength(form)), 0)
  }

  /** The text up to `end`, and the secrets that begin before it as a whole. */
  of(text: string, end = text.length): string {
    if (this.isEmpty) return text.slice(0, end)
    let out = ''
    let from = 0
    while (from < end) {
      const found = this.#firstFrom(text, from)
      if (!found || found.at >= end) break
      out += text.slice(from, found.at) + found.shown
      from = found.at + found.length
    }
    return from < end ? out + text.slice(from, end) : out
  }

  #firstFrom(text: string, from: number): { at: number; length: number; shown: string } | null {
    let first: { at: number; length: number; shown: string } | null = null
    for (const [form, shown] of this.#forms) {
      const at = text.indexOf(form, from)
      if (at !== -1 && (!first || at < first.at)) first = { at, length: form.length, shown }
    }
    return first
  }
}
