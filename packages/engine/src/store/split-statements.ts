/**
 * Cuts SQL text into its statements, without the semicolons. PostgreSQL would take the whole text at once, but Citus
 * needs every statement as a query of its own.
 *
 * It knows what a semicolon can hide in: strings (also E'…' with backslashes), quoted names, dollar quotes, comments
 * (block comments nest), parentheses (rules), and `begin atomic … end` bodies of functions.
 */
export function splitStatements(text: string): string[] {
  const statements: string[] = []
  let start = 0
  let position = 0
  let isEmpty = true
  let parentheses = 0
  let blocks = 0
  let words: string[] = []

  const finish = (end: number) => {
    if (!isEmpty) statements.push(text.slice(start, end).trim())
    start = end + 1
    isEmpty = true
    parentheses = 0
    blocks = 0
    words = []
  }

  while (position < text.length) {
    const token = readToken(text, position)
    const end = position + token.length
    if (token === ';' && parentheses === 0 && blocks === 0) {
      finish(position)
    } else if (!isBlank(token)) {
      isEmpty = false
      if (token === '(') parentheses += 1
      if (token === ')') parentheses = Math.max(0, parentheses - 1)
      if (isWord(token)) {
        const word = token.toLowerCase()
        blocks = Math.max(0, blocks + blockStep(word, words, blocks))
        // Six words reach from `create` to the keyword that says what is created, and a bound keeps long texts linear.
        words = words.length < 6 ? [...words, word] : [...words.slice(0, 5), word]
      }
    }
    position = end
  }
  finish(text.length)
  return statements
}

/** How far `begin`, `case` and `end` open or close blocks; outside of function bodies they are words like others. */
function blockStep(word: string, before: readonly string[], blocks: number): number {
  if (blocks > 0) return word === 'begin' || word === 'case' ? 1 : word === 'end' ? -1 : 0
  const makesRoutine = before[0] === 'create' && before.some((one) => one === 'function' || one === 'procedure')
  return makesRoutine && word === 'atomic' && before.at(-1) === 'begin' ? 1 : 0
}

const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy
const NUMBER = /\p{N}[\p{L}\p{N}_$.]*/uy
const SPACE = /\s+/y
const LINE_COMMENT = /--[^\n\r]*/y
const DOLLAR_QUOTE = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy
const QUOTED_NAME = /"(?:[^"]|"")*(?:"|$)/y
const STRING = /'(?:[^']|'')*(?:'|$)/y
const ESCAPE_STRING = /[eE]'(?:[^'\\]|''|\\[\s\S]|\\$)*(?:'|$)/y

/** The token that begins here. What is not closed reaches to the end of the text: PostgreSQL will say what is wrong. */
function readToken(text: string, position: number): string {
  const match = (pattern: RegExp): string | null => {
    pattern.lastIndex = position
    return pattern.exec(text)?.[0] ?? null
  }
  const found =
    match(SPACE) ??
    match(LINE_COMMENT) ??
    match(ESCAPE_STRING) ??
    // Words and numbers are read whole, so a dollar sign or an E inside of a name opens nothing.
    match(WORD) ??
    match(NUMBER) ??
    match(STRING) ??
    match(QUOTED_NAME)
  if (found !== null) return found
  if (text.startsWith('/*', position)) return readBlockComment(text, position)
  const quote = match(DOLLAR_QUOTE)
  if (quote === null) return text.charAt(position)
  const close = text.indexOf(quote, position + quote.length)
  return close < 0 ? text.slice(position) : text.slice(position, close + quote.length)
}

function readBlockComment(text: string, position: number): string {
  const edge = /\/\*|\*\//g
  edge.lastIndex = position
  for (let depth = 0, found = edge.exec(text); found; found = edge.exec(text)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return text.slice(position, edge.lastIndex)
  }
  return text.slice(position)
}

function isBlank(token: string): boolean {
  return token.trim() === '' || token.startsWith('--') || token.startsWith('/*')
}

function isWord(token: string): boolean {
  WORD.lastIndex = 0
  return WORD.exec(token)?.[0] === token
}
