import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SystemClock } from '../../runtime/clock.ts'
import { silentLogger } from '../../runtime/logger.ts'
import { withClaimLock } from './claim-lock.ts'
import { ownIdentity } from './process-identity.ts'

function setup() {
  const directory = mkdtempSync(join(tmpdir(), 'belfry-lock-test-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const locked = <T>(work: () => Promise<T>) =>
    withClaimLock({ directory, clock: new SystemClock(), logger: silentLogger }, work)
  return { directory, locked }
}

test('of many who want the lock at once one works at a time, and each gets its turn', async () => {
  const t = setup()
  let [inside, most, done] = [0, 0, 0]
  await Promise.all(
    Array.from({ length: 20 }, () =>
      t.locked(async () => {
        most = Math.max(most, ++inside)
        await new Promise((next) => setImmediate(next))
        inside -= 1
        done += 1
      }),
    ),
  )
  expect({ most, done }).toEqual({ most: 1, done: 20 })
})

test('a lock whose holder is dead is taken, by one of all who see that', async () => {
  const t = setup()
  writeFileSync(join(t.directory, '7'), JSON.stringify({ ...ownIdentity(), startedAt: 'long ago' }))
  let [inside, most] = [0, 0]
  await Promise.all(
    Array.from({ length: 10 }, () =>
      t.locked(async () => {
        most = Math.max(most, ++inside)
        await new Promise((next) => setImmediate(next))
        inside -= 1
      }),
    ),
  )
  expect(most).toBe(1)
})

test('work that fails gives the lock back and its error on', async () => {
  const t = setup()
  await expect(t.locked(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await t.locked(async () => 'next')).toBe('next')
})

test('claims of the past are cleared away', async () => {
  const t = setup()
  for (let turn = 0; turn < 30; turn += 1) await t.locked(async () => {})
  expect(readdirSync(t.directory).length).toBeLessThan(12)
})
