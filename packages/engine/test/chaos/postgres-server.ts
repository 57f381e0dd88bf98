import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { SystemClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { pause } from '../../src/runtime/pause.ts'
import type { EmbeddedConnection } from '../../src/store/embedded/answering.ts'
import { bringUp, closeEndpoint } from '../../src/store/embedded/bring-up.ts'
import { findPostmaster } from '../../src/store/embedded/postmaster.ts'
import type { ServerSettings } from '../../src/store/embedded/settings.ts'

/**
 * A PostgreSQL of a test's own, as durable as in production, that the test may mistreat. Nobody watches over it: what is
 * killed stays down until the test starts it again, at the same address.
 */
export class PostgresServer {
  readonly #dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'belfry-chaos-')))
  /** Where the server's own files are. */
  readonly directory = join(this.#dataDir, 'postgres')
  #cluster: 'made if missing' | 'expected' = 'made if missing'
  #connection: EmbeddedConnection | undefined
  #pool: pg.Pool | undefined

  get connection(): EmbeddedConnection {
    if (!this.#connection) throw new Error('the server has not been started yet')
    return this.#connection
  }

  async start(settings: ServerSettings = {}): Promise<void> {
    const { connection } = await bringUp({
      dataDir: this.#dataDir,
      settings: { max_connections: '200', shared_buffers: '128MB', ...settings },
      cluster: this.#cluster,
      clock: new SystemClock(),
      logger: silentLogger,
    })
    this.#cluster = 'expected'
    this.#connection = connection
  }

  /** SIGKILL to the server and to everything it started, all at once: what was not on the disk is gone. */
  async kill(): Promise<void> {
    const pids = this.#processes()
    for (const pid of pids) signal(pid, 'SIGKILL')
    while (pids.some(isAlive)) await pause(5)
  }

  /** Ends when it answers again. */
  async crash(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** The server neither answers nor closes anything, like a machine behind a cut cable. */
  freeze(): void {
    for (const pid of this.#processes()) signal(pid, 'SIGSTOP')
  }

  thaw(): void {
    for (const pid of this.#processes()) signal(pid, 'SIGCONT')
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    if (!this.#pool) {
      this.#pool = new pg.Pool({ ...this.connection, max: 3 })
      this.#pool.on('error', () => {})
    }
    return (await this.#pool.query<Row>(text, values)).rows
  }

  async remove(): Promise<void> {
    await this.#pool?.end().catch(() => {})
    this.thaw()
    await this.kill()
    await closeEndpoint(this.#dataDir)
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  #processes(): number[] {
    const postmaster = findPostmaster(this.directory)?.pid
    if (postmaster === undefined) return []
    const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    const children = stdout.split('\n').flatMap((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number)
      return pid !== undefined && parent === postmaster ? [pid] : []
    })
    return [postmaster, ...children]
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}
