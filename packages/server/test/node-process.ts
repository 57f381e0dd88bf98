import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject, onTestFinished } from 'vitest'

/** `belfry start` in a process of its own, as somebody would start it. */
export class NodeProcess {
  readonly child: ChildProcess
  /** Where it serves. */
  readonly url: Promise<string>
  #said = ''

  constructor(environment: Record<string, string>) {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const place = mkdtempSync(join(tmpdir(), 'belfry-node-'))
    this.child = spawn(process.execPath, [join(build.directory, 'cli', 'dist', 'main.js'), 'start'], {
      cwd: place,
      env: { PATH: '/usr/bin:/bin', PORT: '0', BELFRY_DATA_DIR: join(place, 'data'), ...environment },
    })
    onTestFinished(() => {
      for (const pid of [this.child.pid as number, ...this.children()]) endProcess(pid)
      rmSync(place, { recursive: true, force: true })
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-10_000)
    })
    const ended = once(this.child, 'close')
    this.url = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        const url = /belfry ready on (http:\S+)/.exec(line)?.[1]
        if (url !== undefined) resolve(url)
      })
      void ended.then(() => reject(new Error(`the node ended: ${this.#said}`)))
    })
    this.url.catch(() => {})
  }

  /** What it wrote to stderr last. */
  get said(): string {
    return this.#said
  }

  /** The process ended although nobody killed it. */
  get endedByItself(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** The processes that it has started itself. */
  children(): number[] {
    const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    return stdout.split('\n').flatMap((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number)
      return pid !== undefined && parent === this.child.pid ? [pid] : []
    })
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
