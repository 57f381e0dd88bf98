import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { scheduler } from 'node:timers/promises'
import { pause } from '../../../src/runtime/pause.ts'

export interface Launch {
  name: string
  /** Called for each start: the second start of a node may need what the first one was given. */
  command(): { words: string[]; environment: Record<string, string>; place: string }
  /** The line by which the process says that it works. */
  ready: RegExp
}

/** A process that ended although the harness did not kill it. */
export interface OwnEnd {
  member: string
  at: number
  how: string
}

const RESTART_MS = 1_000
const MOST_RESTARTS = 100
const READY_MS = 60_000

/** One process of the fleet, under a name that outlives its restarts. */
export class Member {
  readonly name: string
  readonly ownEnds: OwnEnd[] = []
  readonly #launch: Launch
  readonly #onReady: (match: RegExpExecArray) => void
  readonly #news = new EventEmitter()
  #child: ChildProcess | undefined
  #isWanted = false
  #said = ''

  constructor(launch: Launch, onReady: (match: RegExpExecArray) => void = () => {}) {
    this.name = launch.name
    this.#launch = launch
    this.#onReady = onReady
  }

  /** Ends when the process has said that it works, or has been killed again; `false`: neither within a minute. */
  async start(): Promise<boolean> {
    this.#isWanted = true
    const deadline = new AbortController()
    const settled = once(this.#news, 'settled', { signal: deadline.signal }).then(
      () => true,
      () => false,
    )
    this.#spawn()
    const late = scheduler.wait(READY_MS, { signal: deadline.signal }).catch(() => {})
    const isSettled = await Promise.race([settled, late.then(() => false)])
    deadline.abort()
    return isSettled
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(name)
  }

  /** What the process wrote to stderr last. */
  get said(): string {
    return this.#said
  }

  /** SIGKILL; the process stays away until `start`. */
  kill(): void {
    this.#isWanted = false
    this.#child?.kill('SIGKILL')
    this.#news.emit('settled')
  }

  async ended(): Promise<void> {
    const child = this.#child
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  #spawn(): void {
    const { words, environment, place } = this.#launch.command()
    // A group of its own: an interrupt from the terminal is for the harness alone.
    const child = spawn(process.execPath, words, {
      cwd: place,
      env: { PATH: '/usr/bin:/bin', ...environment },
      detached: true,
    })
    this.#child = child
    child.stdin.on('error', () => {})
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-2_000)
    })
    child.once('exit', (code, signal) => void this.#ended(child, String(signal ?? code)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = this.#launch.ready.exec(line)
      if (!match) return
      this.#onReady(match)
      this.#news.emit('settled')
    })
  }

  async #ended(child: ChildProcess, how: string): Promise<void> {
    if (!this.#isWanted || child !== this.#child) return
    this.ownEnds.push({ member: this.name, at: Date.now(), how: `${how}: ${this.#said}` })
    await pause(RESTART_MS)
    if (this.#isWanted && this.ownEnds.length < MOST_RESTARTS) this.#spawn()
  }
}
