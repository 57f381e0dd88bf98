const encoder = new TextEncoder()

export const utf8Bytes = (text: string): number => encoder.encode(text).length

/** Text that the database takes: no NUL, no half characters, not longer than this. */
export function cleanText(text: string, maxCharacters: number): string {
  return text.slice(0, maxCharacters).replaceAll('\0', '\ufffd').toWellFormed()
}
