import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PlacedList } from './placed-list.ts'

test('whoever comes and goes in whatever order, the list holds what a set would', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(20)), { maxLength: 200 }), (steps) => {
      const all = Array.from({ length: 21 }, (_, name) => ({ name, place: -1 }))
      const list = new PlacedList<(typeof all)[number]>()
      const set = new Set<(typeof all)[number]>()
      for (const [comes, n] of steps) {
        const member = all[n] as (typeof all)[number]
        if (!comes) expect(list.delete(member)).toBe(set.delete(member))
        else if (!set.has(member)) {
          list.add(member)
          set.add(member)
        }
        expect(list.has(member)).toBe(set.has(member))
        expect(list.size).toBe(set.size)
      }
      expect(new Set(list)).toEqual(set)
    }),
  )
})

test('a member may leave while the list is gone through, and each is met once', () => {
  const list = new PlacedList<{ name: string; place: number }>()
  for (const name of ['a', 'b', 'c']) list.add({ name, place: -1 })
  const met: string[] = []
  for (const member of list) {
    met.push(member.name)
    list.delete(member)
  }
  expect(met).toEqual(['a', 'b', 'c'])
  expect(list.size).toBe(0)
})
