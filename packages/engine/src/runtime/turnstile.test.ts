import { expect, test } from 'vitest'
import { Turnstile, type Visit } from './turnstile.ts'

const entered = async (turnstile: Turnstile, ...names: string[]): Promise<Visit> => {
  const visit = await turnstile.enter(names)
  if (visit === null) throw new Error('turned away')
  return visit
}

test('of those who want the same, the next in line goes in when one leaves', async () => {
  const turnstile = new Turnstile(2)
  const first = await entered(turnstile, 'a')
  await entered(turnstile, 'a', 'b')
  const third = entered(turnstile, 'a')
  first.leave()
  ;(await third).leave()
  await entered(turnstile, 'a')
})

test('while those inside stand still the others are turned away, and come in again after that', async () => {
  const turnstile = new Turnstile(2)
  const inside = [await entered(turnstile, 'a'), await entered(turnstile, 'a')]
  expect(await turnstile.enter(['a'])).toBeNull()
  // By then it is known that they stand still: nobody waits any more.
  const isOver = { value: false }
  const nextTurn = new Promise((resolve) => setImmediate(resolve)).then(() => {
    isOver.value = true
  })
  expect(await turnstile.enter(['b', 'a'])).toBeNull()
  expect(isOver.value).toBe(false)
  await nextTurn
  for (const visit of inside) visit.leave()
  await entered(turnstile, 'b', 'a')
})

test('a line in which those inside get on is stood in', async () => {
  const turnstile = new Turnstile(1)
  const inside = await entered(turnstile, 'a')
  expect(await turnstile.enter(['a'])).toBeNull()
  inside.moved()
  const next = entered(turnstile, 'a')
  inside.leave()
  await next
})
