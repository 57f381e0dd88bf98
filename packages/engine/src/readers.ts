import type pg from 'pg'
import type { Settings } from './options.ts'
import { Reader } from './store/reader.ts'

/** The connections through which tenants read. */
export interface Readers {
  /** The database itself: what was written a moment ago is there. */
  fresh: Reader
  /** Lists and history: the replica if there is one, else the same as `fresh`. */
  lists: Reader
  close(): Promise<void>
}

/** Reads share few connections: each takes one for a millisecond or so. */
const CONNECTIONS = 4

export function startReaders(
  { schema, logger, readDatabase }: Pick<Settings, 'schema' | 'logger' | 'readDatabase'>,
  connection: string | pg.ClientConfig,
  walled: boolean,
): Readers {
  const common = { schema, logger, walled, maxConnections: CONNECTIONS }
  const fresh = new Reader({ ...common, connection, isReplica: false })
  const lists = readDatabase === null ? fresh : new Reader({ ...common, connection: readDatabase, isReplica: true })
  return {
    fresh,
    lists,
    close: async () => {
      await fresh.close()
      if (lists !== fresh) await lists.close()
    },
  }
}
