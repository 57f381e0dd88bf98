// The house rules that no formatter or type checker knows: who may import whom, where time and chance may come from,
// how large a file may be. `node scripts/tidy.mjs [root]` prints one line per offence and fails if there is any.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Each layer may import those above it. Folders of one layer do not know each other. */
const LAYERS = [
  ['errors.ts'],
  ['runtime'],
  ['job'],
  ['schedule'],
  ['input'],
  ['store'],
  ['audit'],
  ['timers', 'concurrency', 'ready', 'leases', 'history', 'shards', 'vault', 'tenants'],
  ['promotion'],
  ['dependencies'],
  ['attempts'],
  ['intake'],
  ['backfill'],
  ['executors'],
  ['lookup'],
  ['node'],
  ['top-level files'],
  ['testing'],
]
const TOP_LEVEL = LAYERS.findIndex(([name]) => name === 'top-level files')
const TESTING = TOP_LEVEL + 1

const ENGINE = 'packages/engine/src/'
/** Words for places that say nothing about what is there. */
const FORBIDDEN_FOLDERS = /^(utils?|helpers?|types|commons?|libs?|shared|misc|maintenance|managers?)$/
const MAX_LINES = 400
/** Of a row that is read by place. */
const MAX_PLACES = 10
/** A list that begins like this is a tuple's type: no value does. */
const TUPLE = /^\[\s*(?:\.{3}\[\s*)?(?:(?:string|number|boolean)\b|[\w$]+\??\s*:)/
/** What stands before a tuple's type. */
const BEFORE_TUPLE = /(?:\btype\s+[\w$]+(?:<[^>]*>)?\s*=|<|\breadonly|\bas|[^|&][|&])\s*$/
/** A description of the whole API, made by a program and read with a search. */
const GENERATED = /^packages\/client\/src\/wire\.ts$/

/** The packages whose sources are the product; a benchmark or a simulation makes its own time. */
const PRODUCT = /^packages\/(engine|server|client|cli)\/src\//
const MAY_HAVE_TIME = /^packages\/(engine\/src\/(runtime|testing)|client\/src\/runtime)\//
/** All tests share one server, and the kit that lends out its schemas. */
const TEST_DATABASES = 'packages/engine/test/database.ts'
const MAY_READ_ENVIRONMENT = /^packages\/(cli|bench|sim)\//
const TIME_AND_CHANCE =
  /\bDate\s*\.\s*now\b|\bnew\s+Date\s*(?:\(\s*\)|(?![\w\s(]))|\bMath\s*\.\s*random\b|\bset(?:Timeout|Interval)\b/g
const WORD = /[\w$]+/y
const NARROWED_TEST = /\b(?:test|it|describe|suite)(?:\s*\.\s*\w+)*?\s*\.\s*(?:only|skip|todo)\b/g

const root = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..'))
const offences = []
const offend = (file, line, message) => offences.push({ file, line, message })

const files = ['packages', 'scripts'].flatMap((folder) => sourcesUnder(join(root, folder))).map(read)
const byPath = new Map(files.map((file) => [file.path, file]))

for (const file of files) {
  checkShape(file)
  checkTokens(file)
  checkRows(file)
  for (const { specifier, line } of file.imports) checkImport(file, specifier, line)
}
checkStatementNames()
checkCycles()
report()

// – what is read –

function sourcesUnder(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    // Built output is a link beside the sources, and is not followed.
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === 'dist' ? [] : sourcesUnder(path)
    return entry.isFile() && /\.(ts|tsx|mts|mjs)$/.test(entry.name) ? [path] : []
  })
}

function read(path) {
  const source = readFileSync(path, 'utf8')
  const { code, text } = withoutComments(source)
  const name = relative(root, path).split(sep).join('/')
  const isTest = /\.test\.[a-z]+$/.test(name) || /^packages\/[^/]+\/test\//.test(name)
  return { path: name, source, code, text, isTest, imports: importsOf(code, text) }
}

/** `code` without comments and without what stands in quotes, `text` without comments; both keep every place. */
function withoutComments(source) {
  const code = source.split('')
  const text = source.split('')
  const blank = (target, from, to) => {
    for (let i = from; i < to && i < source.length; i++) if (source[i] !== '\n') target[i] = ' '
  }
  /** How deep in braces each open template was left for its `${…}`. */
  const templates = []
  let depth = 0
  let previous = ''
  for (let i = 0; i < source.length; ) {
    const first = source[i]
    const resumes = first === '}' && templates.at(-1) === depth
    const token = tokenAt(source, i, { previous, resumes })
    if (token.kind === 'comment') {
      blank(code, i, token.end)
      blank(text, i, token.end)
    } else if (token.kind === 'quoted') {
      blank(code, i + 1, token.end - (token.opens ? 2 : 1))
      if (resumes) templates.pop()
      if (token.opens) templates.push(depth)
      previous = token.opens ? '{' : ')'
    } else {
      if (first === '{') depth++
      if (first === '}') depth--
      if (first.trim() !== '') previous = source.slice(i, token.end)
    }
    i = token.end
  }
  return { code: code.join(''), text: text.join('') }
}

function tokenAt(source, at, { previous, resumes }) {
  const first = source[at]
  const two = source.slice(at, at + 2)
  if (two === '//') return { kind: 'comment', end: indexOrEnd(source, '\n', at) }
  if (two === '/*') return { kind: 'comment', end: indexOrEnd(source, '*/', at + 2) + 2 }
  if (first === "'" || first === '"') return { kind: 'quoted', end: endOfQuoted(source, at + 1, first) }
  if (first === '`' || resumes) return endOfTemplate(source, at + 1)
  if (first === '/' && !endsValue(previous)) return { kind: 'quoted', end: endOfPattern(source, at + 1) }
  WORD.lastIndex = at
  return { kind: 'code', end: at + (WORD.exec(source)?.[0].length ?? 1) }
}

/** A slash divides after a value and begins a pattern after anything else. */
function endsValue(token) {
  return /[\w$)\]}]$/.test(token) && !/^(?:return|typeof|case|in|of|await|yield)$/.test(token)
}

function endOfQuoted(source, from, quote) {
  for (let i = from; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === quote || source[i] === '\n') return i + 1
  }
  return source.length
}

function endOfTemplate(source, from) {
  for (let i = from; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === '`') return { kind: 'quoted', end: i + 1, opens: false }
    else if (source[i] === '$' && source[i + 1] === '{') return { kind: 'quoted', end: i + 2, opens: true }
  }
  return { kind: 'quoted', end: source.length, opens: false }
}

function endOfPattern(source, from) {
  let inClass = false
  for (let i = from; i < source.length && source[i] !== '\n'; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === '[') inClass = true
    else if (source[i] === ']') inClass = false
    else if (source[i] === '/' && !inClass) return i + 1
  }
  return from
}

function indexOrEnd(source, text, from) {
  const found = source.indexOf(text, from)
  return found === -1 ? source.length : found
}

function importsOf(code, text) {
  const imports = []
  const pattern = /\b(?:import|export)\b(?:[^'"`;=()]*?\bfrom)?\s*\(?\s*(['"])([^'"\n]+)\1/g
  for (const match of text.matchAll(pattern)) {
    // What only looks like an import stands in quotes.
    if (/^(?:import|export)/.test(code.slice(match.index))) {
      imports.push({ specifier: match[2], line: lineAt(text, match.index) })
    }
  }
  return imports
}

function lineAt(text, index) {
  let line = 1
  for (let i = text.indexOf('\n'); i !== -1 && i < index; i = text.indexOf('\n', i + 1)) line++
  return line
}

// – the rules –

function checkShape({ path, source }) {
  const lines = source.split('\n').length - (source.endsWith('\n') ? 1 : 0)
  if (lines > MAX_LINES && !GENERATED.test(path))
    offend(path, MAX_LINES + 1, `has ${lines} lines; past ${MAX_LINES} look for the second idea`)
  const folder = dirname(path)
    .split('/')
    .find((name) => FORBIDDEN_FOLDERS.test(name))
  if (folder) offend(path, 1, `lies in a folder called ${folder}; name it after what is in it`)
}

function checkTokens(file) {
  const { path, isTest } = file
  const each = (pattern, message) => {
    for (const match of file.code.matchAll(pattern)) offend(path, lineAt(file.code, match.index), message(match[0]))
  }
  if (!/\.config\.[a-z]+$/.test(path)) each(/\bexport\s+default\b/g, () => 'exports a default; give it a name')
  if (isTest) {
    each(
      /\bsleep\s*\(|\bsetTimeout\b/g,
      (found) => `sleeps (${found.replace('(', '').trim()}); wait on a signal or step by hand`,
    )
    each(NARROWED_TEST, (found) => `${found.replace(/\s/g, '')} leaves tests out`)
    return
  }
  if (PRODUCT.test(path) && !MAY_HAVE_TIME.test(path)) {
    each(TIME_AND_CHANCE, (found) => `${found.replace(/\s+/g, ' ')} outside runtime/; take a Clock or a Random`)
  }
  if (path.startsWith('packages/') && !MAY_READ_ENVIRONMENT.test(path)) {
    each(/\bprocess\s*\.\s*env\b/g, () => 'process.env outside cli; take an option')
  }
}

/** Past ten places nobody can count: columns have names, and `columns` of store/columns.ts reads a row by them. */
function checkRows({ path, code, isTest }) {
  if (!path.startsWith(ENGINE) || isTest) return
  for (const { index, 0: found } of code.matchAll(/[\w$]+(?:\?\.)?\[\d{2,}\]/g)) {
    offend(path, lineAt(code, index), `reads ${found} by its place; give the columns names`)
  }
  for (const { start, places } of placesNamedIn(code)) {
    if (places > MAX_PLACES) offend(path, lineAt(code, start), `counts ${places} places; give the columns names`)
  }
}

/** Tuple types and lists that take a row apart, with how many places each has. A list of values is neither. */
function placesNamedIn(code) {
  const named = []
  const open = []
  for (let i = 0; i < code.length; i++) {
    if ('[({'.includes(code[i])) open.push({ char: code[i], start: i, places: 1, parameters: [] })
    else if (code[i] === ',' && open.length > 0) open.at(-1).places++
    else if ('])}'.includes(code[i]) && open.length > 0) {
      const list = open.pop()
      const [before, text, after] = [code.slice(0, list.start).trimEnd(), code.slice(list.start, i), code.slice(i + 1)]
      if (list.char === '(' && /^\s*(?::[^;{}]*?)?=>/.test(after)) named.push(...list.parameters)
      if (list.char !== '[') continue
      if (/,\s*$/.test(text)) list.places--
      const parent = open.at(-1)
      if (parent?.char === '[' && before.endsWith('...')) parent.places += list.places - 1
      const isBinding = /^\s*=(?![=>])/.test(after) || (/^\s*:/.test(after) && !before.endsWith('?'))
      if (isBinding || TUPLE.test(text) || BEFORE_TUPLE.test(before.slice(-100))) named.push(list)
      else if (parent?.char === '(') parent.parameters.push(list)
    }
  }
  return named
}

function checkImport(file, specifier, line) {
  if (/^@belfry\/[^/]+\/(src|dist|test)(\/|$)/.test(specifier)) {
    offend(file.path, line, `imports ${specifier}; a package is imported by its name`)
  }
  if (!specifier.startsWith('.')) return
  const target = resolveFrom(file.path, specifier)
  const [own, other] = [packageOf(file.path), packageOf(target)]
  if (own && other && own !== other) {
    if (target === TEST_DATABASES && /^packages\/[^/]+\/test\//.test(file.path)) return
    offend(file.path, line, `imports ${target} of another package; import @belfry/${other}`)
  } else if (file.path.startsWith(ENGINE) && target.startsWith(ENGINE) && !file.isTest) {
    checkDirection(file.path, target, line)
  }
}

function resolveFrom(path, specifier) {
  return join(dirname(path), specifier).split(sep).join('/')
}

function packageOf(path) {
  return /^packages\/([^/]+)\//.exec(path)?.[1]
}

function checkDirection(from, to, line) {
  const [own, other] = [folderOf(from), folderOf(to)]
  if (own === other && own !== 'errors.ts') return
  const [layer, below] = [layerOf(own), layerOf(other)]
  if (layer === -1) return offend(from, 1, `lies in the unknown folder ${own}; say in scripts/tidy.mjs where it stands`)
  if (below === -1) return
  if (below === TESTING) offend(from, line, `imports ${strip(to)}; only tests import the test kit`)
  else if (below > layer) offend(from, line, `${own} may not import ${strip(to)}: ${other} stands above it`)
  else if (below === layer && layer !== TOP_LEVEL) {
    offend(from, line, `${own} may not import ${strip(to)}: they stand side by side; let a move join them`)
  }
}

function strip(path) {
  return path.slice(ENGINE.length)
}

/** The folder that decides; a file at the top stands for itself. */
function folderOf(path) {
  return strip(path).split('/')[0]
}

function layerOf(name) {
  const layer = LAYERS.findIndex((names) => names.includes(name))
  return layer === -1 && /\.ts$/.test(name) ? TOP_LEVEL : layer
}

function checkStatementNames() {
  const firstPlace = new Map()
  for (const { path, text, code, isTest } of files) {
    if (!path.startsWith(ENGINE) || isTest) continue
    for (const match of text.matchAll(/(?<![\w.])statement\(\s*(['"`])([^'"`]*)\1/g)) {
      if (!code.startsWith('statement', match.index)) continue
      const line = lineAt(text, match.index)
      const name = match[2]
      const first = firstPlace.get(name)
      if (!path.endsWith('.sql.ts')) offend(path, line, `the statement ${name} stands outside a *.sql.ts file`)
      if (!/^[a-z][a-z0-9_]*$/.test(name)) offend(path, line, `the statement ${name} is not named in snake_case`)
      if (first) offend(path, line, `the statement ${name} has a name that ${first} uses already`)
      else firstPlace.set(name, `${basename(path)}:${line}`)
    }
  }
}

/** Files that import each other in a ring, each ring once. Types count: a reader follows them too. */
function checkCycles() {
  const state = new Map()
  const trail = []
  const visit = (path) => {
    state.set(path, 'open')
    trail.push(path)
    const { imports, isTest } = byPath.get(path)
    for (const { specifier, line } of isTest ? [] : imports) {
      const target = specifier.startsWith('.') ? resolveFrom(path, specifier) : ''
      if (!byPath.has(target)) continue
      if (state.get(target) === 'open') {
        const ring = [...trail.slice(trail.indexOf(target)), target].map((one) => basename(one))
        offend(path, line, `closes a ring of imports: ${ring.join(' → ')}`)
      } else if (!state.has(target)) visit(target)
    }
    trail.pop()
    state.set(path, 'done')
  }
  for (const path of byPath.keys()) if (!state.has(path)) visit(path)
}

function report() {
  offences.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line))
  for (const { file, line, message } of offences) console.error(`${file}:${line}: ${message}`)
  if (offences.length === 0) return
  console.error(`\n${offences.length === 1 ? 'one offence' : `${offences.length} offences`} against the house rules`)
  process.exitCode = 1
}
