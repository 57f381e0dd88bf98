/** One line of iCalendar as it is meant: unfolded, with the number of its first line in the text. */
export interface ContentLine {
  line: number
  /** In capitals, as parameters' names are. */
  name: string
  parameters: ReadonlyMap<string, string>
  value: string
}

/** What is wrong with the text, and where. */
export class ICalendarProblem extends Error {
  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`)
  }
}

const SHOWN = 40
export const cut = (text: string): string => JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/** Lines end in CRLF or LF, and one that begins with a blank goes on with the one before. Empty ones mean nothing. */
export function* contentLines(text: string): Generator<ContentLine> {
  let at = 0
  let begun: string[] | null = null
  for (const physical of text.replace(/^\u{FEFF}/u, '').split(/\r\n|\n|\r/)) {
    at++
    if (physical === '') continue
    const isFolded = physical.startsWith(' ') || physical.startsWith('\t')
    if (isFolded && begun === null)
      throw new ICalendarProblem(at, 'begins with a blank, but there is no line to go on with')
    if (isFolded) {
      ;(begun as string[]).push(physical.slice(1))
      continue
    }
    if (begun !== null) yield contentLine(begun)
    begun = [String(at), physical]
  }
  if (begun !== null) yield contentLine(begun)
}

function contentLine([number, ...pieces]: string[]): ContentLine {
  const line = Number(number)
  const text = pieces.join('')
  const [name = '', ...parameters] = splitOutsideQuotes(text.slice(0, endOfName(text, line)))
  if (!/^[A-Za-z0-9-]+$/.test(name)) throw new ICalendarProblem(line, `${cut(text)} is no NAME:value`)
  return {
    line,
    name: name.toUpperCase(),
    parameters: new Map(parameters.map((parameter) => parameterOf(parameter, line))),
    value: text.slice(endOfName(text, line) + 1),
  }
}

function parameterOf(text: string, line: number): [string, string] {
  const equals = text.indexOf('=')
  if (equals < 1) throw new ICalendarProblem(line, `${cut(text)} is no parameter such as VALUE=DATE`)
  return [text.slice(0, equals).toUpperCase(), text.slice(equals + 1).replace(/^"(.*)"$/, '$1')]
}

/** The colon that ends the name and its parameters: the first one outside of quotes. */
function endOfName(text: string, line: number): number {
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '"') isQuoted = !isQuoted
    else if (text[i] === ':' && !isQuoted) return i
  }
  throw new ICalendarProblem(line, `${cut(text)} has no colon, so it is no NAME:value`)
}

function splitOutsideQuotes(text: string): string[] {
  const parts: string[] = ['']
  let isQuoted = false
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted
    if (character === ';' && !isQuoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}
