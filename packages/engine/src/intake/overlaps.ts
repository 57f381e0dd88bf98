import { BelfryError } from '../errors.ts'
import { nameOf, OVERLAP } from '../job/states.ts'

/** A trigger that meets a live run and may not wait for it; `whose` policy that is. */
export function overlaps(jobId: string, policy: number, whose: string): BelfryError {
  const name = nameOf(OVERLAP, policy)
  const waits = policy === OVERLAP.skip ? '' : ', and no more may wait for it'
  return new BelfryError('overlap', `a run of job ${jobId} is still alive${waits}: ${whose} is ${name}`)
}
