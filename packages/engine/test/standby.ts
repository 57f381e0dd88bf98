import { spawnSync } from 'node:child_process'
import { appendFileSync, chownSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { pause } from '../src/runtime/pause.ts'
import { PostgresServer } from './chaos/postgres-server.ts'

/** The name of the slot, and of the standby among those that the primary waits for. */
const STANDBY = 'standby'
const REPLICATION_RULE = 'local replication all trust\nhost replication all 127.0.0.1/32 scram-sha-256\n'
/** What a copy of a running server must not have: its log is streamed, and the rest is of this server alone. */
const NOT_COPIED = [
  'pg_wal',
  'pg_replslot',
  'postmaster.pid',
  'postmaster.opts',
  'standby.signal',
  'postgresql.auto.conf',
]

/**
 * A primary and a standby that it waits for: what was acknowledged is on the disks of both. When the primary is killed the
 * standby takes its place, and the killed server can come back at its old address as the standby of the new primary.
 */
export class ReplicatedServer {
  #primary = new PostgresServer()
  #standby = new PostgresServer()

  async start(): Promise<void> {
    await this.#primary.start()
    await this.rebuild()
  }

  get primary(): PostgresServer {
    return this.#primary
  }

  get standby(): PostgresServer {
    return this.#standby
  }

  query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return this.#primary.query<Row>(text, values)
  }

  /** Kills the primary; resolves when the standby takes writes. */
  async failOver(): Promise<void> {
    await this.#primary.kill()
    const [old, promoted] = [this.#primary, this.#standby]
    await promoted.query('select pg_promote()')
    this.#primary = promoted
    this.#standby = old
  }

  /** Ends when there is a standby again. */
  async crash(): Promise<void> {
    await this.failOver()
    await this.rebuild()
  }

  async kill(): Promise<void> {
    await Promise.all([this.#primary.kill(), this.#standby.kill()])
  }

  /** Makes the other server, which does not run, a standby of the primary; resolves when the primary waits for it. */
  async rebuild(): Promise<void> {
    await copy(this.#primary, this.#standby.directory)
    const { host, port, user, password } = this.#primary.connection
    const credentials = password === undefined ? '' : ` password=${password}`
    await this.#standby.start({
      primary_conninfo: `host=${host} port=${port} user=${user} application_name=${STANDBY}${credentials}`,
      primary_slot_name: STANDBY,
      wal_retrieve_retry_interval: '100ms',
    })
    await this.#primary.query(`alter system set synchronous_standby_names = '${STANDBY}'`)
    await this.#primary.query('select pg_reload_conf()')
    const isSynchronous = async () =>
      (await this.#primary.query(`select from pg_stat_replication where sync_state = 'sync'`)).length > 0
    while (!(await isSynchronous())) await pause(20)
  }

  async remove(): Promise<void> {
    await Promise.all([this.#primary.remove(), this.#standby.remove()])
  }
}

/** As a connection string that names all these servers, in this order. */
export function urlOf(...servers: PostgresServer[]): string {
  const [{ user, password, database }] = servers.map(({ connection }) => connection) as [PostgresServer['connection']]
  const credentials = password === undefined ? user : `${user}:${encodeURIComponent(password)}`
  const hosts = servers.map(({ connection: { host, port } }) => `${encodeURIComponent(host)}:${port}`)
  return `postgres://${credentials}@${hosts.join(',')}/${database}?target_session_attrs=read-write`
}

/** Copies the files of a running server, as `pg_basebackup` does, which the embedded package has not. */
async function copy(server: PostgresServer, directory: string): Promise<void> {
  appendFileSync(join(server.directory, 'pg_hba.conf'), REPLICATION_RULE)
  const client = new pg.Client(server.connection)
  await client.connect()
  try {
    await client.query('select pg_reload_conf()')
    await client.query(
      `select pg_create_physical_replication_slot('${STANDBY}', true)
       where not exists (select from pg_replication_slots where slot_name = '${STANDBY}')`,
    )
    await client.query(`select pg_backup_start('standby', true)`)
    copyFiles(server.directory, directory)
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    const { uid, gid } = statSync(server.directory)
    const write = (name: string, text: string) => {
      writeFileSync(join(directory, name), text, { mode: 0o600 })
      chownSync(join(directory, name), uid, gid)
    }
    write('backup_label', rows[0]?.labelfile ?? '')
    write('standby.signal', '')
    write('postgresql.auto.conf', '')
  } finally {
    await client.end()
  }
}

function copyFiles(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  const { uid, gid } = statSync(from)
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' })
  // A file may go while the server works; its log says so.
  if (status !== 0 && !/No such file/.test(stderr))
    throw new Error(`the files of the server cannot be copied: ${stderr}`)
  for (const name of NOT_COPIED) rmSync(join(to, name), { recursive: true, force: true })
  for (const name of ['pg_wal', 'pg_wal/archive_status', 'pg_replslot']) {
    if (existsSync(join(to, name))) continue
    mkdirSync(join(to, name), { mode: 0o700 })
    chownSync(join(to, name), uid, gid)
  }
}
