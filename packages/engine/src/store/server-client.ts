import pg from 'pg'
import { BelfryError } from '../errors.ts'
import { isOutage, TAKES_NO_WRITES } from './database-errors.ts'
import type { ServerAddress, ServerUse } from './database-url.ts'

/** A server that says nothing for so long is passed over, if there are others. */
const PASS_OVER_MS = 2_000
const ANSWER_MS = 5_000

/** What leads a connection to its server; shared by all that are opened with it. */
export interface ServerConfig extends pg.ClientConfig {
  servers: Servers
}

/** The servers that a database may be on, and which of them was the right one when a connection was last opened. */
export class Servers {
  readonly use: ServerUse
  readonly #addresses: readonly ServerAddress[]
  #known: ServerAddress | null = null
  #search: Promise<ServerAddress> | null = null

  /** Without addresses there is one server, and the configuration of the connections names it. */
  constructor(use: ServerUse, addresses: readonly ServerAddress[]) {
    this.use = use
    this.#addresses = addresses
  }

  /** Where a connection is to be tried; null: where its configuration says. Connections that are opened at once share a search. */
  async likely(config: pg.ClientConfig): Promise<ServerAddress | null> {
    if (this.#addresses.length === 0) return null
    if (this.#known !== null) return this.#known
    this.#search ??= this.#find(config).finally(() => {
      this.#search = null
    })
    this.#known = await this.#search
    return this.#known
  }

  /** The server there is not the right one, or none any more. */
  forget(address: ServerAddress | null): void {
    if (this.#known === address) this.#known = null
  }

  /** Asks one after the other. What is wrong with the caller (a password) is thrown: another server would say the same. */
  async #find(config: pg.ClientConfig): Promise<ServerAddress> {
    const reasons: string[] = []
    for (const [index, address] of this.#addresses.entries()) {
      const client = new pg.Client({ ...config, connectionTimeoutMillis: PASS_OVER_MS })
      client.on('error', () => {})
      Object.assign(client, address)
      try {
        await client.connect()
        await check(client, this.use)
        return address
      } catch (error) {
        if (!isOutage(error)) throw error
        reasons.push(`${index + 1} ${error instanceof BelfryError ? 'is read-only' : 'cannot be reached'}`)
      } finally {
        void client.end().catch(() => {})
      }
    }
    const wanted = this.use === 'reads' ? 'answers' : 'takes writes'
    throw new BelfryError('database_unavailable', `no server of the database ${wanted}: ${reasons.join(', ')}`)
  }
}

/**
 * A client that is connected only to a server that takes writes, where they are needed. After a failover the address may still
 * lead to the old primary, which is a standby now: such a connection is closed, and the next one finds the new primary.
 */
export class ServerClient extends pg.Client {
  readonly #config: ServerConfig

  constructor(config: ServerConfig) {
    super(config)
    this.#config = config
    // A connection that breaks emits an error besides failing its statement, and the pool listens only while it is idle: with
    // nobody listening, the end of a database would end the whole process.
    this.on('error', () => {})
  }

  override connect(): Promise<pg.Client>
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void
  override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | undefined {
    const connected = this.#connect().then(() => this)
    if (callback === undefined) return connected
    const told = callback as (error: Error | null, client?: pg.Client) => void
    connected.then((client) => told(null, client), told)
    return undefined
  }

  async #connect(): Promise<void> {
    const { servers } = this.#config
    const address = await servers.likely(this.#config)
    Object.assign(this, address)
    try {
      await super.connect()
      await check(this, servers.use)
    } catch (error) {
      servers.forget(address)
      void this.end().catch(() => {})
      throw error
    }
  }
}

const IS_RIGHT: Record<ServerUse, string | null> = {
  writes: `select current_setting('transaction_read_only') = 'off' as is_right`,
  'fresh reads': 'select not pg_is_in_recovery() as is_right',
  reads: null,
}

async function check(client: pg.Client, use: ServerUse): Promise<void> {
  const text = IS_RIGHT[use]
  if (text === null) return
  const { rows } = await client.query<{ is_right: boolean }>({ text, query_timeout: ANSWER_MS } as pg.QueryConfig)
  if (!rows[0]?.is_right) throw new BelfryError('database_unavailable', TAKES_NO_WRITES)
}
