import type pg from 'pg'
import type { Settings } from './options.ts'
import { CONNECTIONS } from './store/connection-budget.ts'
import { Reader } from './store/reader.ts'

/** The connections through which tenants read. */
export interface Readers {
  /** The database itself: what was written a moment ago is there. */
  fresh: Reader
  /** Lists and history: the replica if there is one, else the same as `fresh`. */
  lists: Reader
  close(): Promise<void>
}

export function startReaders(
  { schema, logger, readDatabase }: Pick<Settings, 'schema' | 'logger' | 'readDatabase'>,
  connection: string | pg.ClientConfig,
  walled: boolean,
): Readers {
  // Each read takes one for a millisecond or so.
  const maxConnections = readDatabase === null ? CONNECTIONS.readers : CONNECTIONS.readers / 2
  const common = { schema, logger, walled, maxConnections }
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
