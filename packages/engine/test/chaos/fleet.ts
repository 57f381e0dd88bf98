import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import type { Created } from '../../src/index.ts'
import type { Ledger } from './ledger.ts'

const PROGRAM = fileURLToPath(new URL('./node.mjs', import.meta.url))

export interface NodeOptions {
  database: string | pg.ClientConfig
  ledger: Ledger
  /** Queues that the node serves, with how many runs at a time. */
  queues?: Record<string, number>
  leaseMs?: number
  schema?: string
  allowPrivateTargets?: boolean
  /** Hears no notification. */
  deaf?: boolean
  /** After so many its handlers begin and do not end. */
  stallsAfter?: number
}

interface Answer {
  id?: number
  result?: unknown
  problem?: { code?: string; message: string }
  ready?: boolean
  message?: string
  fields?: unknown
}

/** What a call of a node that died meanwhile is answered with: whether it was done is unknown. */
export class NodeDied extends Error {}

/** A Belfry node in a process of its own. */
export class BelfryNode {
  readonly child: ChildProcess
  readonly ready: Promise<void>
  /** Errors that the node logged. */
  readonly errors: string[] = []
  readonly #calls = new Map<number, { resolve(result: unknown): void; reject(error: unknown): void }>()
  readonly #ended: Promise<unknown>
  #lastCall = 0
  #killed = false
  #endedByItself = false

  constructor({ ledger, queues = {}, deaf = false, stallsAfter, ...belfry }: NodeOptions) {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const engine = join(build.directory, 'engine', 'dist', 'index.js')
    const book = { connection: ledger.connection, table: ledger.table }
    const options = { engine, belfry, queues, ledger: book, deaf, stallsAfter }
    this.child = spawn(process.execPath, ['--expose-gc', PROGRAM, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void this.child.kill('SIGKILL'))
    this.child.stdin?.on('error', () => {})
    this.#ended = once(this.child, 'close').then(() => {
      this.#endedByItself = !this.#killed
      for (const { reject } of this.#calls.values()) reject(new NodeDied())
      this.#calls.clear()
    })
    this.ready = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        const answer = JSON.parse(line) as Answer
        if (answer.ready) resolve()
        else this.#hear(answer)
      })
      void this.#ended.then(() => reject(new NodeDied()))
    })
    this.ready.catch(() => {})
  }

  get pid(): number {
    return this.child.pid as number
  }

  async call<Result>(call: string, ...values: unknown[]): Promise<Result> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) throw new NodeDied()
    const id = ++this.#lastCall
    const answered = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }))
    this.child.stdin?.write(`${JSON.stringify({ id, call, values })}\n`)
    return answered as Promise<Result>
  }

  createMany(jobs: unknown[]): Promise<Created[]> {
    return this.call('jobs.createMany', jobs)
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name)
  }

  /** The process ended although nobody killed it. */
  get endedByItself(): boolean {
    return this.#endedByItself
  }

  async kill(): Promise<void> {
    this.#killed = true
    this.child.kill('SIGKILL')
    await this.#ended
  }

  #hear({ id, result, problem, message, fields }: Answer): void {
    if (message !== undefined) this.errors.push(`${message} ${JSON.stringify(fields)}`)
    const call = id === undefined ? undefined : this.#calls.get(id)
    if (id === undefined || !call) return
    this.#calls.delete(id)
    if (problem) call.reject(Object.assign(new Error(problem.message), { code: problem.code }))
    else call.resolve(result)
  }
}

/** Nodes that have all started. */
export async function startNodes(count: number, options: NodeOptions): Promise<BelfryNode[]> {
  const nodes = Array.from({ length: count }, () => new BelfryNode(options))
  await Promise.all(nodes.map((node) => node.ready))
  return nodes
}
