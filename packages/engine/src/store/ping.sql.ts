import { statement } from './statement.ts'

/** Takes no row, and is refused where nothing can be written: a database that only answers is of no use to a node. */
export const PING = statement('ping', 'select from belfry.meta m where false for share')

/** A replica that has applied all it received is up to date, however long ago the last change was. */
export const AS_OF = statement(
  'as_of',
  `select case when not pg_is_in_recovery() or pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then clock_timestamp()
     else coalesce(pg_last_xact_replay_timestamp(), clock_timestamp()) end`,
)
