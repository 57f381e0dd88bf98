import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ManualClock } from '../../runtime/clock.ts'
import { ownIdentity } from './process-identity.ts'
import { Users } from './users.ts'

function setup() {
  const directory = mkdtempSync(join(tmpdir(), 'belfry-users-test-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const clock = new ManualClock()
  const addFromElsewhere = () => {
    const path = join(directory, 'other.user')
    writeFileSync(path, JSON.stringify({ ...ownIdentity(), place: 'another container' }))
    utimesSync(path, clock.now() / 1_000, clock.now() / 1_000)
  }
  const addRubbish = () => writeFileSync(join(directory, 'odd.user'), '{"pid":')
  return { clock, addFromElsewhere, addRubbish, users: () => new Users(directory, clock) }
}

test('two users of one process are two users', async () => {
  const t = setup()
  const [one, two] = [t.users(), t.users()]
  await one.enter()
  expect(one.others()).toBe('none')
  await two.enter()
  expect(one.others()).toBe('here')
  two.leave()
  expect(one.others()).toBe('none')
})

test('a user in another container counts as alive until its last sign is too old', async () => {
  const t = setup()
  const own = t.users()
  await own.enter()
  t.addFromElsewhere()
  t.clock.advance(19_000)
  expect(own.others()).toBe('elsewhere')
  t.clock.advance(2_000)
  expect(own.others()).toBe('none')
})

test('a file that names no process is nobody', async () => {
  const t = setup()
  const own = t.users()
  await own.enter()
  t.addRubbish()
  expect(own.others()).toBe('none')
})
