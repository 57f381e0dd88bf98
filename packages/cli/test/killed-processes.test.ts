import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { BelfryPlace } from './belfry-process.ts'

const PROCESSES = 2
const KILLS = 5
const CALLERS = 32
/** As many before each kill and after it. */
const ANSWERS = 100
/** Far longer than any answer takes: who is still waiting then waits for ever. */
const PATIENCE_MS = 20_000

const place = new BelfryPlace()
afterAll(() => place.remove())

/** One connection with one request; answers how it ended. */
function ask(port: number): Promise<'answered' | 'cut' | 'left waiting'> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: PATIENCE_MS })
    let received = 0
    socket.on('timeout', () => {
      resolve('left waiting')
      socket.destroy()
    })
    socket.on('connect', () => socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'))
    socket.on('data', (bytes) => {
      received += bytes.length
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(received > 0 ? 'answered' : 'cut'))
  })
}

test('a connection that was handed to a process which is killed is cut, not left waiting', async () => {
  const belfry = place.start(['start'], { PORT: '0', BELFRY_PROCESSES: String(PROCESSES) })
  const port = Number((await belfry.line(/^belfry ready on \S+:(\d+)$/))[1])
  const users = join(place.directory, '.belfry', 'users')
  const nodes = (): number[] => {
    const files = readdirSync(users).filter((name) => name.endsWith('.user'))
    const pids = files.map((name) => (JSON.parse(readFileSync(join(users, name), 'utf8')) as { pid: number }).pid)
    return [...new Set(pids)].filter((pid) => pid !== belfry.child.pid)
  }
  const ends = { answered: 0, cut: 0, 'left waiting': 0 }
  /** Many ask without a pause while something is done: for the time of a start that would only keep it from starting. */
  const underLoad = async (work: () => Promise<void>) => {
    let isOver = false
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver) ends[await ask(port)]++
    })
    await work()
    isOver = true
    await Promise.all(callers)
  }
  const answersMore = () => {
    const enough = ends.answered + ANSWERS
    return expect.poll(() => ends.answered).toBeGreaterThan(enough)
  }
  const killed = new Set<number>()
  const living = () => nodes().filter((pid) => !killed.has(pid))
  for (let i = 0; i < KILLS; i++) {
    await expect.poll(() => living().length).toBe(PROCESSES)
    const [victim = 0] = living()
    killed.add(victim)
    await underLoad(async () => {
      await answersMore()
      process.kill(victim, 'SIGKILL')
      await answersMore()
    })
  }
  await expect.poll(() => living().length).toBe(PROCESSES)
  expect(ends['left waiting']).toBe(0)
}, 180_000)
