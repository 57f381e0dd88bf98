import type { Api } from '../../api/api.ts'
import { type Flags, type FlagTable, given } from '../../command/flags.ts'
import { findJobId } from '../jobs/find-job.ts'

export const DEAD_LETTER_FLAGS: FlagTable = {
  job: { value: 'job', about: 'of this job, by id or name' },
  queue: { value: 'name', about: 'of this queue' },
  'failure-class': { value: 'class', about: 'timeout, network, http_4xx, http_5xx, …' },
}

export async function deadLetterFilter(api: Api, flags: Flags) {
  const job = flags.text('job')
  return given({
    job: job === undefined ? undefined : await findJobId(api, job),
    queue: flags.text('queue'),
    failureClass: flags.text('failure-class'),
  })
}
