import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MEMBERS } from './fault-plan.ts'
import { Member } from './member.ts'
import type { Receiver } from './receiver.ts'

const PERFORMER = fileURLToPath(new URL('./performer.mjs', import.meta.url))
/** Short, so that what a kill has cut is taken up again while the run lasts. */
const LEASE_MS = 5_000
const CONCURRENCY = 20

export const QUEUES = { library: 'local', worker: 'remote' } as const

/** The node that a worker asks, and so depends on. */
export const nodeOf = (worker: string): string =>
  MEMBERS.node[(Number(worker.split('-')[1]) - 1) % MEMBERS.node.length] as string

/** Nine processes on one PostgreSQL: nodes as the command line starts them, libraries with handlers, remote workers. */
export class Fleet {
  readonly members = new Map<string, Member>()
  /** Where each node serves, by its name. */
  readonly urls = new Map<string, string>()
  readonly key = `admin_${randomBytes(24).toString('hex')}`
  readonly #encryptionKey = randomBytes(32).toString('base64')
  readonly #place = mkdtempSync(join(tmpdir(), 'belfry-fleet-'))
  readonly #build: string
  readonly #database: string
  readonly #receiver: Receiver

  constructor(build: string, database: string, receiver: Receiver) {
    this.#build = build
    this.#database = database
    this.#receiver = receiver
  }

  async start(): Promise<void> {
    // The first node makes the schema; the others would only wait for it.
    for (const name of MEMBERS.node) await this.#add(this.#node(name))
    const performers = [
      ...MEMBERS.library.map((name) => this.#performer(name, 'library', this.#librarySettings())),
      ...MEMBERS.worker.map((name) => this.#performer(name, 'worker', this.#workerSettings(name))),
    ]
    await Promise.all(performers.map((member) => this.#add(member)))
  }

  get(name: string): Member {
    const member = this.members.get(name)
    if (!member) throw new Error(`there is no process called ${name}`)
    return member
  }

  /** Signals all processes before it returns, so that an exit handler can call it. */
  kill(): void {
    for (const member of this.members.values()) member.kill()
  }

  async end(): Promise<void> {
    this.kill()
    await Promise.all([...this.members.values()].map((member) => member.ended()))
    rmSync(this.#place, { recursive: true, force: true })
  }

  async #add(member: Member): Promise<void> {
    this.members.set(member.name, member)
    if (!(await member.start())) throw new Error(`${member.name} does not start: ${member.said}`)
  }

  #node(name: string): Member {
    const place = join(this.#place, name)
    mkdirSync(place)
    const command = () => ({
      words: [join(this.#build, 'cli', 'dist', 'main.js'), 'start'],
      place,
      environment: {
        // A node that was killed comes back at its old address: workers and callers know no other.
        PORT: new URL(this.urls.get(name) ?? 'http://localhost:0').port,
        BELFRY_DATA_DIR: join(place, 'data'),
        BELFRY_DATABASE_URL: this.#database,
        BELFRY_ADMIN_KEY: this.key,
        BELFRY_ENCRYPTION_KEY: this.#encryptionKey,
        BELFRY_ALLOW_PRIVATE_TARGETS: '1',
      },
    })
    return new Member({ name, command, ready: /belfry ready on (http:\S+)/ }, ([, url]) =>
      this.urls.set(name, url as string),
    )
  }

  #performer(name: string, role: 'library' | 'worker', settings: object): Member {
    const module = (path: string) => pathToFileURL(join(this.#build, path)).href
    const modules = {
      engine: module('engine/dist/index.js'),
      client: module('client/dist/index.js'),
      worker: module('client/dist/worker/index.js'),
    }
    const queues = { [QUEUES[role]]: CONCURRENCY }
    const options = { name, role, modules, settings, queues, ledgerUrl: this.#receiver.ledgerUrl }
    const command = () => ({ words: [PERFORMER, JSON.stringify(options)], environment: {}, place: this.#place })
    return new Member({ name, command, ready: /^ready$/ })
  }

  #librarySettings(): object {
    // A library makes HTTP calls too, like a node.
    const shared = { encryptionKey: this.#encryptionKey, allowPrivateTargets: true }
    return { database: this.#database, leaseMs: LEASE_MS, ...shared }
  }

  #workerSettings(name: string): object {
    return { url: this.urls.get(nodeOf(name)), key: this.key, leaseMs: LEASE_MS }
  }
}
