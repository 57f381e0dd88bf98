import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, inject, onTestFinished, test } from 'vitest'

function setup() {
  const build = inject('build')
  if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
  const main = join(build.directory, 'cli', 'dist', 'main.js')
  const place = mkdtempSync(join(tmpdir(), 'belfry-cli-test-'))
  onTestFinished(() => rmSync(place, { recursive: true, force: true }))

  const belfry = (words: string[], environment: Record<string, string>) => {
    const child = spawn(process.execPath, [main, ...words], {
      cwd: place,
      env: { PATH: '/usr/bin:/bin', ...environment },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, said }))
    const line = once(createInterface({ input: child.stdout }), 'line').then(([text]) => String(text))
    return { child, ended, line }
  }
  return { belfry }
}

test('a node says where it serves, answers there, and on SIGTERM ends well', async () => {
  const t = setup()
  const { child, ended, line } = t.belfry([], { PORT: '0' })
  const url = /^belfry ready on (http:\/\/127\.0\.0\.1:\d+)$/.exec(await line)?.[1]
  const answer = await fetch(`${url}/healthz`)
  expect({ status: answer.status, body: await answer.json() }).toEqual({ status: 200, body: { status: 'ok' } })
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
})

test('a wrong setting is one clear line and exit code 2', async () => {
  const { code, said } = await setup().belfry(['start'], { PORT: 'web' }).ended
  expect(code).toBe(2)
  expect(said).toMatch(/^belfry: PORT is "web", but must be .*\n$/)
})

test('an unknown command is refused with those there are', async () => {
  const { code, said } = await setup().belfry(['dance'], {}).ended
  expect(code).toBe(2)
  expect(said).toMatch(/^belfry: there is no `belfry dance`; there are start, migrate, jobs, .*\n$/)
})

test('a port that is taken is told before anything else is started', async () => {
  const taken = createServer().listen(0)
  onTestFinished(() => void taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  const { code, said } = await setup().belfry(['start'], { PORT: String(port) }).ended
  expect(code).toBe(2)
  expect(said).toBe(`belfry: port ${port} is used by another program; set PORT to another one (0 picks a free port)\n`)
})
