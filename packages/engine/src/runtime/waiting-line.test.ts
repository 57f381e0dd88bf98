import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WaitingLine } from './waiting-line.ts'

test('whoever comes first leaves first, in whatever order they come and go', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (comes) => {
      const line = new WaitingLine<number>()
      const expected: number[] = []
      for (const [i, isNew] of comes.entries()) {
        if (isNew) {
          line.push(i)
          expected.push(i)
        } else expect(line.shift()).toBe(expected.shift())
        expect([line.length, line.first, line.last]).toEqual([expected.length, expected[0], expected.at(-1)])
        expect(line.toArray()).toEqual(expected)
      }
    }),
  )
})
