import { statement } from './statement.ts'

export const PING = statement('ping', 'select 1')

/** A replica that has applied all it received is up to date, however long ago the last change was. */
export const AS_OF = statement(
  'as_of',
  `select case when not pg_is_in_recovery() or pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then clock_timestamp()
     else coalesce(pg_last_xact_replay_timestamp(), clock_timestamp()) end`,
)
