import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Pending } from './pending.ts'

const terms = { idOf: (name: string) => name, join: (_: string, told: string) => told }

test('each name comes once, at the earliest time that was said of it, and none before its time', () => {
  const said = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 50 })), { maxLength: 60 })
  fc.assert(
    fc.property(said, fc.integer({ min: 1, max: 4 }), (puts, limit) => {
      const pending = new Pending({ ...terms, max: 1_000 })
      const first = new Map<string, number>()
      for (const [name, at] of puts) {
        pending.put(String(name), at)
        first.set(String(name), Math.min(at, first.get(String(name)) ?? at))
      }
      for (let now = 0; now <= 50; now++) {
        expect(pending.firstAt).toBe(Math.min(...first.values()))
        const due: string[] = []
        for (let taken = limit; taken === limit; ) {
          const some = pending.take(now, limit).map(({ name }) => name)
          taken = some.length
          due.push(...some)
        }
        expect(due.sort()).toEqual([...first.keys()].filter((name) => first.get(name) === now).sort())
        for (const name of due) first.delete(name)
      }
    }),
    { seed: 5, numRuns: 200 },
  )
})

test('no more is remembered than may be, and a name that is remembered already may come earlier', () => {
  const pending = new Pending({ ...terms, max: 10 })
  for (let name = 0; name < 50; name++) pending.put(String(name), 2)
  pending.put('3', 1)
  expect(pending.take(1, 50).map(({ name }) => name)).toEqual(['3'])
  expect(pending.take(2, 50)).toHaveLength(9)
})

test('a name that is told again was not tried before', () => {
  const pending = new Pending({ ...terms, max: 10 })
  pending.put('held', 5, 3)
  pending.put('held', 1)
  expect(pending.take(1, 1)).toMatchObject([{ name: 'held', tries: 0 }])
})
