import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inject, onTestFinished } from 'vitest'
import type { Ledger } from './chaos-ledger.ts'

const PROGRAM = fileURLToPath(new URL('./handling-process.mjs', import.meta.url))

export interface HandlingOptions {
  url: string
  key: string
  queue: string
  ledger: Ledger
  concurrency?: number
  leaseMs?: number
  graceMs?: number
  /** Goes on writing under leases that it knows it has lost. */
  insists?: boolean
  /** After so many its handlers begin and do not end. */
  stallsAfter?: number
}

interface Said {
  started?: true
  inFlight?: number
  error?: string
  fields?: unknown
}

let started = 0

/** A worker in a process of its own. */
export class HandlingProcess {
  readonly id = `w${++started}-${process.pid}`
  readonly child: ChildProcess
  readonly started: Promise<void>
  /** With its code, or with the signal that killed it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /** What it logged as errors. */
  readonly errors: string[] = []
  #inFlight = 0
  #killed = false
  #onSaid: () => void = () => {}

  constructor({ ledger, ...options }: HandlingOptions) {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const module = (path: string) => pathToFileURL(join(build.directory, 'client', 'dist', path)).href
    const given = {
      ...{ id: this.id, concurrency: 20, leaseMs: 30_000, graceMs: 10_000, ...options },
      modules: { client: module('index.js'), worker: module('worker/index.js') },
      ledger: { connection: ledger.connection, table: ledger.table },
      answers: ledger.answersOf(this.id),
    }
    this.child = spawn(process.execPath, [PROGRAM, JSON.stringify(given)], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(async () => {
      this.kill()
      await this.ended
    })
    this.ended = once(this.child, 'close').then(([code, signal]) => signal ?? code)
    this.started = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        const said = JSON.parse(line) as Said
        if (said.started) resolve()
        if (said.inFlight !== undefined) this.#inFlight = said.inFlight
        if (said.error !== undefined) this.errors.push(line)
        this.#onSaid()
      })
      void this.ended.then((how) => reject(new Error(`the worker ended: ${how}`)))
    })
    this.started.catch(() => {})
  }

  /** Until so many handlers are at work. */
  async busyWith(count: number): Promise<void> {
    while (this.#inFlight < count) {
      await new Promise<void>((resolve) => {
        this.#onSaid = resolve
      })
    }
  }

  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    this.child.kill(name)
  }

  kill(): void {
    this.#killed = true
    this.child.kill('SIGKILL')
  }

  /** It ended although nobody killed it. */
  get endedByItself(): boolean {
    return !this.#killed && (this.child.exitCode !== null || this.child.signalCode !== null)
  }
}
