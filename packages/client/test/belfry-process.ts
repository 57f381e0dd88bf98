import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject, onTestFinished } from 'vitest'

/** `belfry start` in a process of its own, as somebody would start it. */
export class BelfryProcess {
  readonly child: ChildProcess
  /** Where it serves. */
  readonly url: Promise<string>
  readonly #ended: Promise<unknown>

  constructor(environment: Record<string, string>) {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const place = mkdtempSync(join(tmpdir(), 'belfry-node-'))
    this.child = spawn(process.execPath, [join(build.directory, 'cli', 'dist', 'main.js'), 'start'], {
      cwd: place,
      env: { PATH: '/usr/bin:/bin', PORT: '0', BELFRY_DATA_DIR: join(place, 'data'), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-10_000)
    })
    this.#ended = once(this.child, 'close')
    onTestFinished(async () => {
      await this.kill()
      rmSync(place, { recursive: true, force: true })
    })
    this.url = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        const url = /belfry ready on (http:\S+)/.exec(line)?.[1]
        if (url !== undefined) resolve(url)
      })
      void this.#ended.then(() => reject(new Error(`the node ended: ${said}`)))
    })
    this.url.catch(() => {})
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#ended
  }
}
