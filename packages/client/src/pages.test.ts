import { expect, test } from 'vitest'
import { Pages } from './pages.ts'
import type { Page } from './wire.ts'

const PAGES: Record<string, Page<number>> = {
  first: { items: [1, 2], nextCursor: 'b' },
  b: { items: [], nextCursor: 'c' },
  c: { items: [3], nextCursor: null },
}

function setup() {
  const asked: string[] = []
  const list = new Pages<number>(async (cursor = 'first') => {
    asked.push(cursor)
    return PAGES[cursor] ?? { items: [], nextCursor: null }
  })
  return { list, asked }
}

test('a list that nobody awaits asks nothing', () => {
  expect(setup().asked).toEqual([])
})

test('an awaited list is its first page, asked for once', async () => {
  const { list, asked } = setup()
  expect(await list).toEqual({ items: [1, 2], nextCursor: 'b' })
  expect(await list).toEqual({ items: [1, 2], nextCursor: 'b' })
  expect(asked).toEqual(['first'])
})

test('a loop goes through all items of all pages, even past an empty one', async () => {
  const { list, asked } = setup()
  const items: number[] = []
  for await (const item of list) items.push(item)
  expect(items).toEqual([1, 2, 3])
  expect(asked).toEqual(['first', 'b', 'c'])
})

test('a loop that is left asks for no further page', async () => {
  const { list, asked } = setup()
  for await (const item of list) if (item === 2) break
  expect(asked).toEqual(['first'])
})

test('pages can be had one by one', async () => {
  const { list } = setup()
  const sizes: number[] = []
  for await (const { items } of list.pages()) sizes.push(items.length)
  expect(sizes).toEqual([2, 0, 1])
})

test('an answer without a cursor is the whole list', async () => {
  const list = new Pages<number, { items: number[] }>(async () => ({ items: [1] }))
  const items: number[] = []
  for await (const item of list) items.push(item)
  expect(items).toEqual([1])
})

test('a page that cannot be had throws where it was wanted', async () => {
  const list = new Pages<number>(() => Promise.reject(new Error('no')))
  await expect(list).rejects.toThrow('no')
  const loop = async () => {
    for await (const _ of list);
  }
  await expect(loop()).rejects.toThrow('no')
})
