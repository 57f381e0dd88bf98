import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, inject, test } from 'vitest'

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface Run {
  id: string
  status: string
  attempt: number
  failures: number
  result: unknown
  error: string | null
  attempts: { number: number; status: string; counted: boolean }[]
}

export interface Program {
  child: ChildProcess
  ended: Promise<number | null>
  /** Everything it has said so far. */
  said(): string
  /** Resolves with the first line that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>
}

/** `test`, or one that says in its name why it is left out: not every machine has all programs. */
export function testWith(...programs: string[]): typeof test {
  const missing = programs.filter((program) => spawnSync(program, ['--version']).status !== 0)
  if (missing.length === 0) return test
  return ((name: string, run: () => Promise<void>) =>
    test.skipIf(true)(`${name} (left out: no ${missing.join(', no ')} here)`, run)) as unknown as typeof test
}

/** The fenced blocks of a page that are marked as of a language, in order; those that are not are lines for a shell. */
export function printed(page: string, language = ''): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
  return blocks.filter(([, marked]) => marked === language).map(([, , block = '']) => block)
}

/** A real node on a database of its own, and programs beside it. */
export class ExamplesPlace {
  readonly key = `admin_${randomBytes(24).toString('hex')}`
  readonly #directory = mkdtempSync(join(tmpdir(), 'belfry-examples-'))
  readonly #database = `examples_${randomBytes(6).toString('hex')}`
  readonly #children: ChildProcess[] = []
  url = ''

  static async start(): Promise<ExamplesPlace> {
    const place = new ExamplesPlace()
    await place.query(`create database ${place.#database}`, inject('postgres').database)
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const node = place.#spawn(process.execPath, [join(build.directory, 'cli', 'dist', 'main.js'), 'start'], {
      cwd: place.#directory,
      env: {
        PORT: '0',
        BELFRY_DATABASE_URL: place.databaseUrl,
        BELFRY_ADMIN_KEY: place.key,
        BELFRY_ALLOW_PRIVATE_TARGETS: '1',
      },
    })
    place.url = (await node.line(/^belfry ready on (http:\S+)$/))[1] as string
    return place
  }

  get databaseUrl(): string {
    const { user, password = '', host, port } = inject('postgres')
    const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
    return `postgresql://${login}@localhost:${port}/${this.#database}?host=${encodeURIComponent(host)}`
  }

  /** Lines as they are printed, but for where this place is; the last program takes the shell's place, to get signals. */
  shell(lines: string, environment: Record<string, string> = {}): Program {
    const here = lines
      .trim()
      .replaceAll('http://127.0.0.1:8080', this.url)
      .replaceAll('$(cat .belfry/admin-key)', this.key)
      .replaceAll('postgres://localhost/shop', `'${this.databaseUrl}'`)
      .replace(/(^|\n|&& )((?:node|python3|examples\/\S+) [^\n&]*)$/, '$1exec $2')
    return this.#spawn('bash', ['-e', '-c', here], { cwd: ROOT, env: environment })
  }

  /** The same, to its end. */
  async pasted(lines: string, environment: Record<string, string> = {}): Promise<string> {
    const program = this.shell(lines, environment)
    expect(await program.ended, program.said()).toBe(0)
    return program.said()
  }

  async call<Body>(method: string, path: string, body?: object): Promise<Body> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    expect(answer.ok, `${method} ${path}: ${answer.status} ${text}`).toBe(true)
    return (text === '' ? null : JSON.parse(text)) as Body
  }

  async create(job: object): Promise<string> {
    return this.runOf((await this.call<{ jobId: string }>('POST', '/v1/jobs', job)).jobId)
  }

  async runOf(jobId: string): Promise<string> {
    const { items } = await this.call<{ items: { id: string }[] }>('GET', `/v1/jobs/${jobId}/runs`)
    return items[0]?.id as string
  }

  run(id: string): Promise<Run> {
    return this.call<Run>('GET', `/v1/runs/${id}`)
  }

  /** The run when it has ended. */
  async end(id: string): Promise<Run> {
    return this.call<Run>('GET', `/v1/runs/${id}?waitMs=30000`)
  }

  async query<Row extends pg.QueryResultRow>(text: string, database = this.#database): Promise<Row[]> {
    const client = new pg.Client({ ...inject('postgres'), database })
    await client.connect()
    return client.query<Row>(text).then(
      ({ rows }) => client.end().then(() => rows),
      (error: unknown) => client.end().then(() => Promise.reject(error)),
    )
  }

  async remove(): Promise<void> {
    for (const child of this.#children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(this.#directory, { recursive: true, force: true })
    await this.query(`drop database ${this.#database} with (force)`, inject('postgres').database)
  }

  #spawn(program: string, words: string[], { cwd, env }: { cwd: string; env: Record<string, string> }): Program {
    const { PATH = '/usr/bin:/bin', HOME = this.#directory } = process.env
    const child = spawn(program, words, { cwd, env: { PATH, HOME, ...env } })
    this.#children.push(child)
    const lines: string[] = []
    const waiting = new Set<(line: string) => void>()
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        for (const tell of waiting) tell(line)
      })
    }
    const said = () => lines.join('\n')
    const ended = once(child, 'close').then(([code]) => code as number | null)
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
      const over = ended.then(() => Promise.reject(new Error(`it ended without ${pattern}:\n${said()}`)))
      return Promise.race([found, over])
    }
    return { child, ended, said, line }
  }
}
