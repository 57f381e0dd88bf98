import { NotTaken } from './entry.ts'

type Fields = Readonly<Record<string, unknown>>

interface Limits {
  fields: Record<string, unknown>
  differences: string[]
}

/** What Kubernetes uses where a manifest says nothing. */
const USUAL_BACKOFF_LIMIT = 6
const BACKOFF = { type: 'exponential', initial: 'PT10S', factor: 2, max: 'PT6M', jitter: 0 }

const MAX_ATTEMPTS = 1_000
const LONGEST_TIMEOUT_S = 7 * 86_400
const LONGEST_WINDOW_S = 366 * 86_400

/** Policies and limits of a CronJob (`spec`) and of the Jobs that it makes (`work`). */
export function limitsOf(spec: Fields, work: Fields): Limits {
  const overlap = overlapOf(spec.concurrencyPolicy)
  const deadline = seconds(spec, 'startingDeadlineSeconds')
  const backoffLimit = seconds(work, 'backoffLimit') ?? USUAL_BACKOFF_LIMIT
  const active = seconds(work, 'activeDeadlineSeconds')
  const timeoutS = Math.min(active ?? 86_400, LONGEST_TIMEOUT_S)
  return {
    fields: {
      overlap: overlap.policy,
      catchUp: { policy: 'latest', window: `PT${Math.min(deadline ?? LONGEST_WINDOW_S, LONGEST_WINDOW_S)}S` },
      retry: {
        maxAttempts: Math.min(backoffLimit + 1, MAX_ATTEMPTS),
        backoff: BACKOFF,
        ...(active === undefined ? {} : { maxAge: `PT${Math.min(active, LONGEST_WINDOW_S)}S` }),
      },
      timeout: `PT${timeoutS}S`,
    },
    differences: [
      ...overlap.differences,
      ...deadlineDiffers(deadline),
      ...timeoutDiffers(active),
      ...(backoffLimit + 1 > MAX_ATTEMPTS
        ? [`backoffLimit ${backoffLimit} becomes ${MAX_ATTEMPTS} attempts, the most there are`]
        : []),
      ...historyDiffers(spec),
      ...notTaken(work),
    ],
  }
}

function overlapOf(policy: unknown): { policy: string; differences: string[] } {
  if (policy === undefined || policy === 'Allow') return { policy: 'allow', differences: [] }
  if (policy === 'Forbid')
    return {
      policy: 'skip',
      differences: ['concurrencyPolicy Forbid may start a time late that it held back; here it is skipped for good'],
    }
  if (policy === 'Replace')
    return {
      policy: 'cancel_running',
      differences: [
        'concurrencyPolicy Replace kills; cancel_running asks the run to stop, and the next one starts when it has',
      ],
    }
  throw new NotTaken(`its concurrencyPolicy is ${JSON.stringify(policy)}, but must be Allow, Forbid or Replace`)
}

function deadlineDiffers(deadline: number | undefined): string[] {
  if (deadline === undefined)
    return ['of several times missed Kubernetes runs the last one, however late; here within 366 days']
  const soon = deadline < 60 ? '; what is less than a minute late runs in any case' : ''
  return [`runs missed for more than startingDeadlineSeconds (${deadline}) are recorded as skipped${soon}`]
}

function timeoutDiffers(active: number | undefined): string[] {
  if (active === undefined)
    return ['without activeDeadlineSeconds a Job may run for ever; here an attempt ends after a day (timeout)']
  const cut = active > LONGEST_TIMEOUT_S ? `; an attempt ends after 7 days instead of ${active} s` : ''
  return [
    `activeDeadlineSeconds (${active}) is for all tries together; here each may take as long, and none begins later than that after the nominal time${cut}`,
  ]
}

function historyDiffers({ successfulJobsHistoryLimit, failedJobsHistoryLimit }: Fields): string[] {
  if (successfulJobsHistoryLimit === undefined && failedJobsHistoryLimit === undefined) return []
  return ['history is kept by time, not by count: the history limits are not taken over']
}

/** Fields of a Job that say how many pods it takes, or what becomes of it afterwards. */
function notTaken(work: Fields): string[] {
  const taken = ['template', 'backoffLimit', 'activeDeadlineSeconds']
  const left = Object.keys(work).filter((field) => !taken.includes(field))
  if (left.length === 0) return []
  return [
    `${left.join(', ')} of the Job ${left.length === 1 ? 'is' : 'are'} not taken over: a run is one piece of work`,
  ]
}

function seconds(of: Fields, name: string): number | undefined {
  const value = of[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  throw new NotTaken(`its ${name} is ${JSON.stringify(value)}, but must be a whole number`)
}
