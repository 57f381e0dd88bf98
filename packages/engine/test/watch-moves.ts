import type pg from 'pg'
import { KEYED, RUN_STATE } from '../src/job/states.ts'
import { type Place, TRANSITIONS } from '../src/job/transitions.ts'
import { quoted } from './schema-state.ts'

/**
 * In each schema of the tests a trigger on `runs` compares every move of every run with the list, and every row with the rules
 * below. It refuses what is not listed.
 *
 * Each move between two places has a sequence of its own, which counts how often the tests of all worker processes made it, also
 * in transactions that were rolled back: a sequence takes no lock that another transaction waits for, and no row is written. The
 * rules have sequences too. So a refusal is known at the end of the run, also where a loop only logs it.
 */

/** In a transaction: what it writes is not the program's doing. */
export const FABRICATED = 'set local belfry.fabricated = on'

const PLACES: readonly Place[] = [...(Object.keys(RUN_STATE) as Place[]), 'absent', 'finished']
const PAIRS = PLACES.flatMap((from) => PLACES.map((to) => ({ from, to })))

const LEASED = `new.state = ${RUN_STATE.leased}`
const WAS_LEASED = `old.state = ${RUN_STATE.leased}`

/** Where there is no old row, what compares with it is null and holds. */
const RULES: Readonly<Record<string, string>> = {
  'a lease has holder, times and deadline, and nothing else has': `num_nulls(new.holder, new.leased_at, new.lease_until, new.deadline) = case when ${LEASED} then 0 else 4 end`,
  'a lease ends by its deadline': 'new.lease_until <= new.deadline',
  'a lease keeps its holder, start and deadline': `not (${LEASED} and ${WAS_LEASED} and (new.holder, new.leased_at, new.deadline) <> (old.holder, old.leased_at, old.deadline))`,
  'the attempt goes up with a lease, and only then': `new.attempt - old.attempt = (${LEASED} and not ${WAS_LEASED})::int`,
  'only a lease begins, or waits for a callback': `(new.begun_at is null and new.status_code is null) or ${LEASED}`,
  'there are not more failures than attempts': 'new.failures <= new.attempt',
  'failures never fall': 'new.failures >= old.failures',
  'it is asked to stop while it is leased, and for good': `new.cancel_requested = old.cancel_requested or ${LEASED} and ${WAS_LEASED} and new.cancel_requested`,
  'only a leased or a waiting run stands at a gate': `new.gate_key is null or new.state in (${RUN_STATE.leased}, ${RUN_STATE.waiting})`,
  'it is claimed with those that have keys if it has one': `(new.limit_key is not null) = (new.delivery >= ${KEYED})`,
  'it stays the run that it is':
    '(new.shard, new.job_id, new.nominal_at, new.tenant_id, new.one_off) = (old.shard, old.job_id, old.nominal_at, old.tenant_id, old.one_off)',
}

const nameOf = ({ from, to }: { from: Place; to: Place }): string => `${from} → ${to}`
const LISTED = new Set(TRANSITIONS.flatMap(({ from, to }) => from.map((place) => nameOf({ from: place, to }))))

/** Where the moves of a run of the tests are counted. */
export const movesSchema = (run: string): string => `test_${run}_moves`

export async function prepareToCount(client: pg.ClientBase, counts: string): Promise<void> {
  const names = [...PAIRS.map(nameOf), ...Object.keys(RULES)]
  await client.query(
    [
      `create schema ${quoted(counts)}`,
      ...names.map((name) => `create sequence ${quoted(counts)}.${quoted(name)}`),
    ].join(';'),
  )
}

/** Watches a schema that has the table `runs`. */
export async function watchMoves(client: pg.ClientBase, schema: string, counts: string): Promise<void> {
  const oids = await sequencesOf(client, counts)
  await client.query(
    `create function ${quoted(schema)}.watch_moves() returns trigger language plpgsql as ${literal(bodyOf(schema, oids))};
     create trigger watch_moves after insert or update or delete on ${quoted(schema)}.runs
       for each row execute function ${quoted(schema)}.watch_moves()`,
  )
}

let known: { counts: string; oids: ReadonlyMap<string, number> } | undefined

async function sequencesOf(client: pg.ClientBase, counts: string): Promise<ReadonlyMap<string, number>> {
  if (known?.counts === counts) return known.oids
  const { rows } = await client.query<{ name: string; oid: number }>(
    `select relname::text as name, oid from pg_class where relnamespace = $1::regnamespace and relkind = 'S'`,
    [counts],
  )
  known = { counts, oids: new Map(rows.map(({ name, oid }) => [name, oid])) }
  return known.oids
}

/**
 * What asks a table stands in a condition of its own, and lists stand in the expressions that use them: all else is then evaluated
 * without a query, and a row costs microseconds.
 */
function bodyOf(schema: string, oids: ReadonlyMap<string, number>): string {
  const number = (place: Place): number => PLACES.indexOf(place)
  const inHistory = (row: 'old' | 'new') =>
    `exists (select from ${quoted(schema)}.attempts a where a.shard = ${row}.shard and a.job_id = ${row}.job_id and a.nominal_at = ${row}.nominal_at)`
  const counters = PAIRS.map((pair) => oids.get(nameOf(pair)))
  const listed = PAIRS.map((pair) => LISTED.has(nameOf(pair)))
  const broken = Object.entries(RULES).map(
    ([rule, holds]) =>
      `if (${holds}) is false then
         perform nextval(${oids.get(rule)}::regclass);
         raise exception 'a run breaks the rule "${rule}": % became %', row_to_json(old), row_to_json(new);
       end if;`,
  )
  return `
    declare
      source integer := ${number('absent')};
      target integer := ${number('absent')};
      pair integer;
      counted bigint;
    begin
      if current_setting('belfry.fabricated', true) = 'on' then return null; end if;
      if tg_op <> 'INSERT' then
        source := old.state;
      elsif new.attempt > (${LEASED})::int then
        source := ${number('finished')};
      elsif new.state = ${RUN_STATE.dependent} then
        if ${inHistory('new')} then source := ${number('finished')}; end if;
      end if;
      if tg_op <> 'DELETE' then
        target := new.state;
        if (${Object.values(RULES)
          .map((holds) => `(${holds})`)
          .join(' and ')}) is false then
          ${broken.join('\n')}
        end if;
        if source = target and (source <> ${RUN_STATE.leased} or new.lease_until = old.lease_until) then return null; end if;
      elsif old.attempt > 0 then
        target := ${number('finished')};
      elsif ${inHistory('old')} then
        target := ${number('finished')};
      end if;
      pair := source * ${PLACES.length} + target + 1;
      counted := nextval((array[${counters.join(',')}])[pair]::regclass);
      if not (array[${listed.join(',')}])[pair] then
        raise exception 'job/transitions.ts does not list the move % of a run: % became %',
          (array[${PAIRS.map((pair) => literal(nameOf(pair))).join(',')}])[pair], row_to_json(old), row_to_json(new);
      end if;
      return null;
    end`
}

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

export interface Moves {
  /** What was made and is not listed, and the rules that were broken. */
  refused: string[]
  /** What is listed and was never made. */
  unmade: string[]
}

export async function countedMoves(client: pg.ClientBase, counts: string): Promise<Moves> {
  const { rows } = await client.query<{ name: string }>(
    'select sequencename::text as name from pg_sequences where schemaname = $1 and last_value is not null',
    [counts],
  )
  const made = new Set(rows.map(({ name }) => name))
  return {
    refused: [...made].filter((name) => !LISTED.has(name)).sort(),
    unmade: [...LISTED].filter((name) => !made.has(name)),
  }
}
