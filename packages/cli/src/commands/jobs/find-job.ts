import type { Api, Page } from '../../api/api.ts'
import { Problem } from '../../api/problem.ts'
import type { Job } from '../../api/shapes.ts'
import type { Operand } from '../../command/command.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const JOB_OPERAND: Operand = { name: 'job', about: "the job's id or name" }

/** A job by id, or by name: the one that still has a future, else the newest. */
export async function findJobId(api: Api, job: string): Promise<string> {
  if (UUID.test(job)) return job
  const { items }: Page<Job> = await api.get('/v1/jobs', { name: job })
  const found = items.find(({ status }) => status === 'active' || status === 'paused') ?? items[0]
  if (found) return found.jobId
  throw new Problem(`there is no job called ${JSON.stringify(job)} (not_found)`, { status: 404, code: 'not_found' })
}
