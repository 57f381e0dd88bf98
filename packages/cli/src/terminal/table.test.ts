import { expect, test } from 'vitest'
import { type Column, tableOf } from './table.ts'
import { widthOf } from './text-width.ts'

interface Row {
  id: string
  name: string
  extra?: string
}

const COLUMNS: Column<Row>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'NAME', of: ({ name }) => name, atLeast: 4 },
  { title: 'EXTRA', of: ({ extra }) => extra ?? '', spare: 1 },
]

test('columns stand under their titles', () => {
  const rows = [
    { id: '1', name: 'digest', extra: 'x' },
    { id: '200', name: 'a' },
  ]
  expect(tableOf(COLUMNS, rows, null)).toBe('ID   NAME    EXTRA\n1    digest  x\n200  a')
})

test('a column that says nothing is left out', () => {
  expect(tableOf(COLUMNS, [{ id: '1', name: 'a' }], null)).toBe('ID  NAME\n1   a')
})

test('a narrow screen cuts texts, then leaves columns out, and never cuts an id', () => {
  const rows = [{ id: '0123456789', name: 'a long name', extra: 'something' }]
  expect(tableOf(COLUMNS, rows, 27)).toBe('ID          NAME  EXTRA\n0123456789  a l…  something')
  expect(tableOf(COLUMNS, rows, 20)).toBe('ID          NAME\n0123456789  a long …')
  expect(tableOf(COLUMNS, rows, 5)).toBe('ID          NAME\n0123456789  a l…')
})

test('wide letters count as two columns', () => {
  const lines = tableOf(
    COLUMNS,
    [
      { id: '1', name: '週報', extra: 'x' },
      { id: '2', name: 'week', extra: 'x' },
    ],
    null,
  ).split('\n')
  expect(new Set(lines.slice(1).map(widthOf)).size).toBe(1)
})

test('a name cannot command the terminal or break the line', () => {
  const table = tableOf(COLUMNS, [{ id: '1', name: '\u001b[2Jevil\nname\u202e' }], null)
  expect(table).toBe('ID  NAME\n1   �[2Jevil name�')
})
