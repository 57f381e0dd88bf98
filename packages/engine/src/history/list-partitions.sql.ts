import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { PARTITIONED_TABLES, type Partition, partitionOf } from './partition.ts'

/** Through the index on pg_inherits: it costs the same whatever else the database holds. */
const LIST = statement(
  'list_partitions',
  `select child.relname::text
   from pg_namespace n
   join pg_class parent on parent.relnamespace = n.oid and parent.relname = any($2::text[])
   join pg_inherits i on i.inhparent = parent.oid
   join pg_class child on child.oid = i.inhrelid
   where n.nspname = $1`,
)

/** The days that are attached, in no order. */
export async function listPartitions(db: Queryable, schema: string): Promise<Partition[]> {
  const rows = await db.query<[string]>(LIST, [schema, [...PARTITIONED_TABLES]])
  return rows.flatMap(([name]) => partitionOf(name) ?? [])
}
