import { BelfryError, refusal } from '../errors.ts'
import { Complaints, readRecord, readText } from '../input/read-fields.ts'
import { type UnderstandContext, type UnderstoodJob, understandJob } from './understand-job.ts'

/** What a group of jobs is called, and what runs when all of them have finished. */
export interface BatchOptions {
  name?: string
  onFinish?: unknown
}

const MAX_NAME = 200

export function understandBatch(
  options: unknown,
  jobs: unknown,
  context: UnderstandContext,
): { name: string | null; onFinish: UnderstoodJob | null } {
  const complaints = new Complaints()
  const { name, onFinish } = readRecord(complaints, 'batch', options, ['name', 'onFinish']) ?? {}
  if (name !== undefined) readText(complaints, 'batch.name', name, MAX_NAME)
  if (Array.isArray(jobs) && jobs.length === 0)
    complaints.add('jobs', 'must not be empty: a batch has at least one job')
  if (complaints.list.length > 0) throw complaints.error('invalid_job')
  return {
    name: (name as string | undefined) ?? null,
    onFinish: onFinish === undefined ? null : last(onFinish, context),
  }
}

function last(input: unknown, context: UnderstandContext): UnderstoodJob {
  try {
    const understood = understandJob(input, context)
    const { when, definition } = understood
    if (when.kind === 'now' && definition.after === undefined) return understood
    const message = 'must not say when it runs: it runs when all jobs of the batch have finished'
    throw refusal('invalid_job', '', message, message)
  } catch (error) {
    if (!(error instanceof BelfryError)) throw error
    throw new BelfryError(error.code, `batch.onFinish: ${error.message}`, {
      complaints: error.complaints.map((complaint) => ({
        ...complaint,
        path: complaint.path === '' ? 'batch.onFinish' : `batch.onFinish.${complaint.path}`,
      })),
      cause: error,
    })
  }
}
