import type pg from 'pg'

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Found by what depends on the schema, which has an index: to look through the catalogue of all schemas took most of the time. */
const inSchema = (catalogue: string): string =>
  `array(select d.objid from pg_depend d where d.refclassid = 'pg_namespace'::regclass and d.classid = '${catalogue}'::regclass
     and d.refobjid = (select oid from pg_namespace where nspname = $1))`

export interface TableState {
  name: string
  /** Little is one page that was never vacuumed: once its rows are deleted, the next ones lie and are planned as in a new one. */
  holds: 'nothing' | 'little' | 'much'
}

export async function tablesOf(client: pg.ClientBase, schema: string): Promise<TableState[]> {
  const { rows } = await client.query<TableState>(
    `select c.relname::text as name,
       case when s.bytes = 0 then 'nothing' when s.bytes <= 8192 and c.reltuples < 0 then 'little' else 'much' end as holds
     from pg_class c cross join lateral pg_relation_size(c.oid) as s (bytes)
     where c.oid = any(${inSchema('pg_class')}) and c.relkind = 'r'`,
    [schema],
  )
  return rows
}

/** How many others work in it: a node that was not stopped listens on a channel of its name, and statements name it. */
export async function usersOf(client: pg.ClientBase, schema: string): Promise<number> {
  const { rows } = await client.query<{ users: number }>(
    `select count(*)::int as users from pg_stat_activity a
     where a.datname = current_database() and a.pid <> pg_backend_pid() and position($1 in a.query) > 0`,
    [schema],
  )
  return rows[0]?.users ?? 0
}

/** The rows of those tables that have any, as JSON. */
export async function rowsOf(client: pg.ClientBase, schema: string, tables: Iterable<string>) {
  const found = new Map<string, string>()
  for (const table of tables) {
    const { rows } = await client.query<{ all: string | null }>(
      `select json_agg(t)::text as all from ${quoted(schema)}.${quoted(table)} t`,
    )
    if (rows[0]?.all) found.set(table, rows[0].all)
  }
  return found
}

/**
 * Differs as soon as anything but rows does: tables, columns, indexes, constraints, triggers, policies, rules, functions,
 * types, rights, days that are attached, statistics. Most are told by the transaction that wrote their row of the
 * catalogue; tables themselves are not, since truncating writes it.
 */
export async function fingerprintOf(client: pg.ClientBase, schema: string): Promise<string> {
  const { rows } = await client.query<{ fingerprint: string }>(FINGERPRINT, [schema])
  return rows[0]?.fingerprint ?? ''
}

const written = (table: string, of: string): string =>
  `select '${table}' as what, count(*) as number, sum(hashtextextended(x.tableoid::text || x.ctid::text || x.xmin::text, 0)) as sum
   from ${table} x where x.${of}`

const OF_TABLES = '= any((select oids from tables)::oid[])'

const FINGERPRINT = `
  with tables as materialized (select ${inSchema('pg_class')} as oids),
  relations as materialized (
    select * from pg_class where oid ${OF_TABLES} or oid = any(array(select indexrelid from pg_index where indrelid ${OF_TABLES})))
  select string_agg(concat_ws(' ', f.what, f.number, f.sum), ', ' order by f.what) as fingerprint
  from (
    select 'pg_class' as what, count(*) as number, sum(hashtextextended(concat_ws('|', x.oid, x.relname, x.relkind, x.relowner,
      x.relpersistence, x.relnatts, x.relchecks, x.relrowsecurity, x.relforcerowsecurity, x.relreplident, x.relispartition,
      x.reloptions, x.relacl, x.relpartbound, x.reltoastrelid), 0)) as sum
    from relations x
    union all ${written('pg_namespace', 'nspname = $1')}
    union all ${written('pg_proc', `oid = any(${inSchema('pg_proc')})`)}
    union all ${written('pg_type', `oid = any(${inSchema('pg_type')})`)}
    union all ${written('pg_constraint', `conrelid ${OF_TABLES}`)}
    union all ${written('pg_attribute', `attrelid ${OF_TABLES} and x.attnum > 0`)}
    union all ${written('pg_attrdef', `adrelid ${OF_TABLES}`)}
    union all ${written('pg_index', `indrelid ${OF_TABLES}`)}
    union all ${written('pg_inherits', `inhrelid ${OF_TABLES}`)}
    union all ${written('pg_trigger', `tgrelid ${OF_TABLES}`)}
    union all ${written('pg_policy', `polrelid ${OF_TABLES}`)}
    union all ${written('pg_rewrite', `ev_class ${OF_TABLES}`)}
    union all ${written('pg_statistic', `starelid ${OF_TABLES}`)}
  ) f`
