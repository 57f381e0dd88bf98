const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u
const MARK = /^\p{Mark}$/u

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const char of text) width += columnsOf(char)
  return width
}

/** At most `width` columns, the last of them `…` if something is missing. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 1
  for (const char of text) {
    used += columnsOf(char)
    if (used > width) break
    kept += char
  }
  return `${kept}…`
}

export const padTo = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** On one line, and without anything that a terminal would obey: names and errors come from strangers. */
export const harmless = (text: string): string =>
  text.replaceAll(/\s+/g, ' ').replaceAll(/[\p{Control}\u202A-\u202E\u2066-\u2069]/gu, '�')

function columnsOf(char: string): number {
  if (WIDE.test(char)) return 2
  return MARK.test(char) ? 0 : 1
}
