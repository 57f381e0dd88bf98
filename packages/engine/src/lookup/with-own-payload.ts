import { readRunPayloads } from '../attempts/run-payloads.sql.ts'
import type { Queryable } from '../store/database.ts'
import type { RunView } from './run-view.ts'

/** Only a run that was triggered may have a payload of its own, so only such a one costs a look. */
export async function withOwnPayload<Found extends RunView | null>(db: Queryable, run: Found): Promise<Found> {
  if (run === null || run.cause !== 'trigger') return run
  const [json] = await readRunPayloads(db, [{ jobId: run.jobId, nominalAt: run.nominalAt.getTime() }])
  return json == null ? run : { ...run, payload: JSON.parse(json) }
}
