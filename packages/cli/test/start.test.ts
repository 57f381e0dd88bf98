import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { BelfryPlace } from './belfry-process.ts'

function setup() {
  const place = new BelfryPlace()
  onTestFinished(() => place.remove())
  return place
}

test('a first start says where it serves and shows its key once; SIGTERM ends it well', async () => {
  const place = setup()
  const first = place.start([], { PORT: '0' })
  const [, url] = await first.line(/^belfry ready on (http:\/\/127\.0\.0\.1:\d+)$/)
  const [, key = ''] = await first.line(/^ {2}(bk_admin_\S+)$/)
  expect(readFileSync(join(place.directory, '.belfry', 'admin-key'), 'utf8')).toBe(`${key}\n`)
  const answer = await fetch(`${url}/healthz`)
  expect({ status: answer.status, body: await answer.json() }).toEqual({ status: 200, body: { status: 'ok' } })
  first.child.kill('SIGTERM')
  expect((await first.ended).code).toBe(0)

  const second = place.start(['start'], { PORT: '0' })
  await second.line(/^belfry ready on/)
  second.child.kill('SIGTERM')
  const { code, out, said } = await second.ended
  expect({ code, hasKey: (out + said).includes(key) }).toEqual({ code: 0, hasKey: false })
})

test('a wrong setting is one clear line and exit code 2', async () => {
  const { code, said } = await setup().run(['start'], { PORT: 'web' })
  expect(code).toBe(2)
  expect(said).toMatch(/^belfry: PORT is "web", but must be .*\n$/)
})

test('an unknown command is refused with those there are', async () => {
  const { code, said } = await setup().run(['dance'])
  expect(code).toBe(2)
  expect(said).toMatch(/^belfry: there is no `belfry dance`; there are start, migrate, jobs, .*\n$/)
})

test.each(['1', '2'])(
  'a port that is taken is told before anything else is started, by %s processes',
  async (count) => {
    const taken = createServer().listen(0)
    onTestFinished(() => void taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const { code, said } = await setup().run(['start'], { PORT: String(port), BELFRY_PROCESSES: count })
    expect(code).toBe(2)
    expect(said).toBe(
      `belfry: port ${port} is used by another program; set PORT to another one (0 picks a free port)\n`,
    )
  },
)
