import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject } from 'vitest'

export interface Ended {
  code: number | null
  out: string
  said: string
}

export interface BelfryProcess {
  child: ChildProcess
  ended: Promise<Ended>
  /** Resolves with the first line of standard output or error that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>
}

/** The built command in a directory of its own. */
export class BelfryPlace {
  readonly directory = mkdtempSync(join(tmpdir(), 'belfry-cli-test-'))
  readonly #children: ChildProcess[] = []

  start(words: readonly string[], environment: Record<string, string>): BelfryProcess {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const main = join(build.directory, 'cli', 'dist', 'main.js')
    const child = spawn(process.execPath, [main, ...words], {
      cwd: this.directory,
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', ...environment },
    })
    this.#children.push(child)
    const lines: string[] = []
    const waiting = new Set<(line: string) => void>()
    const texts = { out: '', said: '' }
    const listen = (stream: NodeJS.ReadableStream, kind: 'out' | 'said') => {
      createInterface({ input: stream }).on('line', (line) => {
        texts[kind] += `${line}\n`
        lines.push(line)
        for (const tell of waiting) tell(line)
      })
    }
    listen(child.stdout, 'out')
    listen(child.stderr, 'said')
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...texts }))
    const line = (pattern: RegExp) => {
      const found = new Promise<RegExpExecArray>((resolve) => {
        const tell = (text: string) => {
          const match = pattern.exec(text)
          if (match === null) return
          waiting.delete(tell)
          resolve(match)
        }
        waiting.add(tell)
        for (const earlier of [...lines]) tell(earlier)
      })
      const over = ended.then(({ out, said }) =>
        Promise.reject(new Error(`it ended without ${pattern}:\n${out}${said}`)),
      )
      return Promise.race([found, over])
    }
    return { child, ended, line }
  }

  run(words: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
    return this.start(words, environment).ended
  }

  async remove(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}
