import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WakeTimes } from './wake-times.ts'

test('each key comes once, at the time that was said last, and none before its time', () => {
  const said = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 50 })), { maxLength: 60 })
  fc.assert(
    fc.property(said, (puts) => {
      const times = new WakeTimes(1_000)
      const last = new Map<string, number>()
      for (const [key, at] of puts) {
        times.put({ shard: 0, key: String(key), at })
        last.set(String(key), at)
      }
      for (let now = 0; now <= 50; now++) {
        const due = times.takeDue(now).map(({ key }) => key)
        expect(due.sort()).toEqual(
          [...last]
            .filter(([, at]) => at === now)
            .map(([key]) => key)
            .sort(),
        )
      }
      expect(times.firstAt).toBeNull()
    }),
    { seed: 5, numRuns: 200 },
  )
})

test('no more is remembered than may be', () => {
  const times = new WakeTimes(10)
  for (let key = 0; key < 50; key++) times.put({ shard: 0, key: String(key), at: 1 })
  expect(times.takeDue(1)).toHaveLength(10)
})
