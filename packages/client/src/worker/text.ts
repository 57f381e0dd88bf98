const encoder = new TextEncoder()

export function utf8Bytes(text: string): number {
  // Most text is short, and three bytes a character is the worst: only what may matter is encoded.
  return encoder.encode(text).length
}

/** Text that the database takes: no NUL, no half characters, not longer than this. */
export function cleanText(text: string, maxCharacters: number): string {
  return text.slice(0, maxCharacters).replaceAll('\0', '').toWellFormed()
}
