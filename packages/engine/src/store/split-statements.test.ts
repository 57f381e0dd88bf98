import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitStatements } from './split-statements.ts'

test('statements are cut at semicolons and come without them, trimmed', () => {
  expect(splitStatements(' select 1;\n\nselect 2 ;select 3')).toEqual(['select 1', 'select 2', 'select 3'])
})

test('text without a statement gives none', () => {
  expect(splitStatements('')).toEqual([])
  expect(splitStatements(' ;; \n -- only a comment; really\n /* and; another */ ;')).toEqual([])
})

test.each([
  ['a string', `select 'a;b'`],
  ['a string with a doubled quote', `select 'it''s; fine'`],
  ['a string that ends in a backslash, which is a plain character', `select 'a\\'`],
  ['an escape string with an escaped quote', `select E'it\\'s; fine'`],
  ['an escape string with an escaped backslash before its end', `select e'a\\\\'`],
  ['a quoted name', `select 1 as "a;b""c;d"`],
  ['a line comment', `select 1 -- one; two\n + 1`],
  ['a line comment with a quote in it', `select 1 -- it's\n + 1`],
  ['a block comment', `select 1 /* one; two */ + 1`],
  ['a nested block comment', `select 1 /* a /* b; */ c; */ + 1`],
  ['a dollar quote', `do $$ begin perform 1; perform 2; end $$`],
  ['a tagged dollar quote that holds another', `do $outer$ begin execute $$ select 1; $$; end $outer$`],
  ['a dollar quote with quotes inside', `do $x$ it's; "odd; $x$`],
  ['parentheses', `create rule r as on insert to t do also (insert into u values (1); notify n)`],
  [
    'a function body in standard SQL',
    `create or replace function f(a int) returns int language sql begin atomic select 1; select case when a > 0 then 1 else 2 end; end`,
  ],
])('a semicolon inside of %s does not end the statement', (_what, statement) => {
  expect(splitStatements(`${statement};\nselect 'next'`)).toEqual([statement, `select 'next'`])
})

test.each([
  ['a name with dollar signs', 'select a$b$c', 'select d$b$e'],
  ['a name that ends in E before a string', `select fine'a\\'`, `select 'b'`],
  ['parameters', 'select $1', 'select $2'],
  ['a division and a multiplication', 'select 4/2*3', 'select 1'],
  ['a transaction', 'begin', 'end'],
  ['a column called atomic', 'select 1 as begin, 2 as atomic', 'select 3'],
  ['a case outside of any body', 'select case when true then 1 end', 'select 2'],
])('%s opens nothing', (_what, first, second) => {
  expect(splitStatements(`${first};${second};`)).toEqual([first, second])
})

test('what is never closed reaches to the end instead of being cut somewhere', () => {
  for (const open of [`select 'a;`, `select "a;`, 'do $$ a;', 'select 1 /* a;', `select E'a;\\'`]) {
    expect(splitStatements(`select 0;${open} b;`)).toEqual(['select 0', `${open} b;`])
  }
})

test('whatever the text, nothing is lost but blanks, comments and the cutting semicolons', () => {
  const piece = fc.constantFrom(
    "'",
    "''",
    '"',
    '$$',
    '$a$',
    '$1',
    '--',
    '/*',
    '*/',
    ';',
    '(',
    ')',
    ' ',
    '\n',
    '\\',
    'E',
    'e',
    'begin',
    'atomic',
    'end',
    'case',
    'create',
    'function',
    'x',
    '1',
    'é',
    '😀',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('')
      let rest = text
      for (const statement of splitStatements(text)) {
        const at = rest.indexOf(statement)
        expect(at).toBeGreaterThanOrEqual(0)
        expect(statement).not.toBe('')
        rest = rest.slice(at + statement.length)
      }
      // Cutting again what was cut out changes nothing.
      for (const statement of splitStatements(text)) expect(splitStatements(statement)).toEqual([statement])
    }),
    { numRuns: 2_000 },
  )
})
