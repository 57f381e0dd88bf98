import { expect, test } from 'vitest'
import { BelfryApiError } from '../src/index.ts'
import { Connection } from '../src/worker/connection.ts'
import { Outbox } from '../src/worker/outbox.ts'
import { systemWorkerRuntime } from '../src/worker/worker-runtime.ts'
import { keepingLogger, signal } from './worker-kit.ts'

interface Item {
  name: string
  bytes: number
}

function setup(send: (names: string[]) => Promise<void>) {
  const logger = keepingLogger()
  const connection = new Connection({ runtime: systemWorkerRuntime, logger, probe: async () => {} })
  const batches: string[][] = []
  const gone: string[] = []
  let onGone: () => unknown = () => {}
  const outbox = new Outbox<Item>({
    ...{ connection, logger },
    send: async (items) => {
      const names = items.map(({ name }) => name)
      batches.push(names)
      await send(names)
    },
    simplify: ({ name, bytes }) => (name.startsWith('plain ') ? null : { name: `plain ${name}`, bytes }),
    areWanted: (items) => items,
    onGone: ({ name }) => {
      gone.push(name)
      onGone()
    },
  })
  /** Ends when so many are gone. */
  const until = (count: number) =>
    new Promise<void>((resolve) => {
      onGone = () => gone.length === count && resolve()
      onGone()
    })
  const push = (items: Item[]) => {
    for (const item of items) outbox.push(item)
  }
  const carry = (items: Item[]) => {
    push(items)
    return until(gone.length + items.length)
  }
  return { push, until, carry, batches, gone, logger }
}

const items = (count: number, bytes = 100): Item[] => Array.from({ length: count }, (_, i) => ({ name: `${i}`, bytes }))

const refused = (status: number) =>
  new BelfryApiError({
    ...{ code: 'invalid_request', status, title: '', detail: 'no' },
    requestId: '',
    retryAfterMs: null,
  })

test('what is pushed in one turn goes in one call, and what comes meanwhile in the next', async () => {
  const first = signal()
  const t = setup(async (names) => {
    if (names.includes('0')) await first.promise
  })
  t.push(items(3))
  await new Promise((resolve) => setImmediate(resolve))
  t.push([{ name: 'a', bytes: 1 }])
  await new Promise((resolve) => setImmediate(resolve))
  t.push([{ name: 'b', bytes: 1 }])
  first.resolve()
  await t.until(5)
  expect(t.batches).toEqual([
    ['0', '1', '2'],
    ['a', 'b'],
  ])
})

test('no call has more than a thousand items or four mebibytes', async () => {
  const t = setup(async () => {})
  await t.carry(items(2_500))
  await t.carry(items(9, 1_000_000))
  expect(t.batches.map((names) => names.length)).toEqual([1_000, 1_000, 500, 4, 4, 1])
})

test('one item that the server will not take costs the others nothing, and is sent in a plainer form', async () => {
  const t = setup(async (names) => {
    if (names.includes('5')) throw refused(422)
  })
  await t.carry(items(8))
  expect(t.gone.sort()).toEqual(['0', '1', '2', '3', '4', '6', '7', 'plain 5'])
  expect(t.logger.lines.map(({ message }) => message)).toEqual(['the end of an attempt is sent in a plainer form'])
})

test('an item over which the server stumbles again and again does not hold up the others for ever', async () => {
  const t = setup(async (names) => {
    if (names.some((name) => name.endsWith('1'))) throw refused(500)
  })
  await t.carry(items(2))
  expect(t.gone).toEqual(['0', 'plain 1'])
  expect(t.logger.lines.at(-1)?.message).toBe('the end of an attempt cannot be sent')
})
