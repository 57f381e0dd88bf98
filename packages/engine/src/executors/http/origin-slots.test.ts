import { expect, test } from 'vitest'
import { ManualClock } from '../../runtime/clock.ts'
import { seededRandom } from '../../runtime/random.ts'
import { OriginSlots, type OriginSlotsSettings } from './origin-slots.ts'

function setup(settings: OriginSlotsSettings = { perOrigin: 4, total: 100 }) {
  const clock = new ManualClock()
  const slots = new OriginSlots({ clock, random: seededRandom(1) }, settings)
  const enter = (origin: string): boolean | Promise<boolean> => {
    let settle: (entered: boolean) => void = () => {}
    const later = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    return slots.enter(origin, clock.now(), settle) ?? later
  }
  const leave = (origin: string) => slots.leave(origin, clock.now())
  /** Takes slots until the origin gets no more at once. */
  const fill = (origin: string) => {
    for (let taken = 0; ; taken++) if (enter(origin) !== true) return taken
  }
  return { clock, slots, enter, leave, fill }
}

test('an origin gets as many calls at a time as it may, and no more', () => {
  const t = setup()
  expect(t.fill('a')).toBe(4)
})

test('what is over waits a moment for a quick origin, in order', async () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  const order: number[] = []
  const waiting = [1, 2].map(async (n) => {
    expect(await t.enter('a')).toBe(true)
    order.push(n)
  })
  t.leave('a')
  t.leave('a')
  await Promise.all(waiting)
  expect(order).toEqual([1, 2])
})

test('what waits for an origin that became slow is sent away after a while', async () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  const waiting = t.enter('a')
  t.clock.advance(5_000)
  expect(await waiting).toBe(false)
})

test('nobody waits for an origin that is known to be slow', () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  t.clock.advance(5_000)
  expect(t.enter('a')).toBe(false)
  t.leave('a')
  expect(t.enter('a')).toBe(true)
  expect(t.enter('a')).not.toBe(true)
})

test('however many slow origins there are, a further one finds room', () => {
  const t = setup({ perOrigin: 256, total: 1_000 })
  const taken = Array.from({ length: 50 }, (_, i) => {
    t.clock.advance(5_000)
    return t.fill(`slow ${i}`)
  })
  expect(taken[0]).toBe(256)
  expect(Math.min(...taken)).toBeGreaterThanOrEqual(1)
  expect(taken.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(1_050)
})

test('who is sent away comes back as fast as the calls end', () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  for (let i = 0; i < 20; i++) {
    t.clock.advance(500)
    t.leave('a')
    t.enter('a')
  }
  const times = Array.from({ length: 10 }, () => t.slots.returnAt('a', t.clock.now()))
  const gaps = times.slice(1).map((at, i) => at - (times[i] as number))
  for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(400)
  for (const gap of gaps) expect(gap).toBeLessThanOrEqual(700)
})

test('so many are not sent away at once that it would keep the node busy', () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  t.clock.advance(5_000)
  let sent = 0
  for (let i = 0; i < 10_000; i++) if (t.enter('a') === false) sent++
  expect(sent).toBe(2_000)
})

test('when it closes, nobody waits any longer and nothing begins', async () => {
  const t = setup()
  for (let i = 0; i < 4; i++) t.enter('a')
  const waiting = t.enter('a')
  t.slots.close()
  expect(await waiting).toBe(false)
  expect(t.enter('b')).toBe(false)
})
