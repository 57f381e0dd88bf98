import { boundsOf, type Partition, type PartitionedTable, partitionName } from './partition.ts'

/** Statements whose tables are named at run time, so they cannot be prepared. Every name is quoted: a schema may be called anything. */

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

export const tableIn = (schema: string, name: string): string => `${quoted(schema)}.${quoted(name)}`

/** Every column of a spec, by name: the tables may differ in the order of columns that were added later. */
export const SPEC_COLUMNS =
  'updated_at, paused_at, job_id, tenant_id, version, shard, name, pause_reason, paused_by, definition'

export const createLike = (schema: string, partition: Partition): string =>
  `create table if not exists ${tableIn(schema, partitionName(partition))} (like ${tableIn(schema, partition.table)} including all)`

export function attach(schema: string, partition: Partition): string {
  const { from, to } = boundsOf(partition)
  const names = `${tableIn(schema, partition.table)} attach partition ${tableIn(schema, partitionName(partition))}`
  return `alter table ${names} for values from ('${from}') to ('${to}')`
}

export const detach = (schema: string, partition: Partition): string =>
  `alter table ${tableIn(schema, partition.table)} detach partition ${tableIn(schema, partitionName(partition))}`

export const drop = (schema: string, partition: Partition): string =>
  `drop table ${tableIn(schema, partitionName(partition))}`

/** Fails at once if anybody uses the table. */
export const probe = (schema: string, partition: Partition): string =>
  `lock table ${tableIn(schema, partitionName(partition))} in access exclusive mode nowait`

export const isAttached = (table: PartitionedTable): string =>
  `select child.relname::text as name
   from pg_namespace n join pg_class parent on parent.relnamespace = n.oid and parent.relname = '${table}'
   join pg_inherits i on i.inhparent = parent.oid join pg_class child on child.oid = i.inhrelid
   where n.nspname = $1 and child.relname = any($2::text[])`

export const lockKept = (schema: string): string =>
  `lock table ${tableIn(schema, 'specs_kept')} in access exclusive mode`

export const keptBetween = (schema: string): string =>
  `select count(*)::int as found from (select from ${tableIn(schema, 'specs_kept')} s where s.job_id >= $1 and s.job_id < $2 limit $3) s`

export const moveFromKept = (schema: string, partition: Partition): string =>
  `with moved as (
     delete from ${tableIn(schema, 'specs_kept')} s where s.job_id >= $1 and s.job_id < $2 returning ${SPEC_COLUMNS}
   )
   insert into ${tableIn(schema, partitionName(partition))} (${SPEC_COLUMNS}) select ${SPEC_COLUMNS} from moved`
