import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BelfryPlace, type BelfryProcess } from './belfry-process.ts'

const place = new BelfryPlace()
const environment = { PORT: '0', BELFRY_PROCESSES: '2' }
let belfry: BelfryProcess
let url: string

beforeAll(async () => {
  belfry = place.start(['start'], environment)
  url = (await belfry.line(/^belfry ready on (\S+)$/))[1] as string
})
afterAll(() => place.remove())

/** The nodes behind the port, by what they left in the data directory. */
function nodesOf({ child }: BelfryProcess): number[] {
  const users = join(place.directory, '.belfry', 'users')
  const pids = readdirSync(users)
    .filter((name) => name.endsWith('.user'))
    .map((name) => (JSON.parse(readFileSync(join(users, name), 'utf8')) as { pid: number }).pid)
  return [...new Set(pids)].filter((pid) => pid !== child.pid)
}

const health = async () => (await fetch(`${url}/healthz`, { headers: { connection: 'close' } })).status

test('one that dies is started again, and the port answers all the while', async () => {
  const [victim = 0, other = 0] = nodesOf(belfry)
  process.kill(victim, 'SIGKILL')
  await belfry.line(/a process ended and is started again {2}process=\d code=null signal=SIGKILL pauseMs=250/)
  expect(await health()).toBe(200)
  const successors = () => nodesOf(belfry).filter((pid) => pid !== victim && pid !== other)
  await expect.poll(successors).toHaveLength(1)
  expect(await health()).toBe(200)
})

test('SIGTERM drains all of them', async () => {
  belfry.child.kill('SIGTERM')
  // The streams close when the last process that has them is gone.
  const { code, said } = await belfry.ended
  expect(code).toBe(0)
  expect(said).toContain('[1] info  stopping')
  expect(said).toContain('[2] info  stopping')
  expect(nodesOf(belfry)).toEqual([])
})

test('a second signal ends all of them at once, and leaves nothing behind', async () => {
  const again = place.start(['start'], environment)
  await again.line(/^belfry ready on/)
  again.child.kill('SIGTERM')
  await again.line(/stopping; once more stops at once/)
  again.child.kill('SIGTERM')
  const { code } = await again.ended
  expect(code).toBe(130)
  expect(nodesOf(again)).toEqual([])
})

test('nodes whose first process is killed end by themselves, and the next start goes on', async () => {
  const again = place.start(['start'], environment)
  await again.line(/^belfry ready on/)
  again.child.kill('SIGKILL')
  const { said } = await again.ended
  expect(said.match(/why="the first process is gone"/g)).toHaveLength(2)
  const { code, out } = await place.run(['migrate'])
  expect({ code, out }).toEqual({ code: 0, out: 'the schema is up to date\n' })
})
