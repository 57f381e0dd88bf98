import { isRecord } from './entry.ts'

type Fields = Readonly<Record<string, unknown>>

export interface TargetPlan {
  fields: Record<string, unknown>
  differences: string[]
}

const PLACEHOLDER = /<aws\.scheduler\.[a-z-]+>/
const MAX_ATTEMPTS = 1_000

/** What a schedule calls, and how often it tries. Rights and clients of AWS stay where they are. */
export function readTarget(target: Fields): TargetPlan {
  const { Arn, Input, RetryPolicy, DeadLetterConfig, RoleArn, ...others } = target
  const input = readInput(Input)
  const retry = isRecord(RetryPolicy) ? retryOf(RetryPolicy) : undefined
  return {
    fields: {
      payload: { target: Arn, ...(input === undefined ? {} : { input }) },
      ...(retry === undefined ? {} : { retry }),
    },
    differences: [
      ...(retry === undefined ? [] : ['retries follow the backoff of Belfry: from 5 s, doubling, up to an hour']),
      ...(RoleArn === undefined
        ? []
        : ['RoleArn is not taken over: the worker calls the target with rights of its own']),
      ...(DeadLetterConfig === undefined
        ? []
        : ['DeadLetterConfig is not taken over: what fails for good is a dead letter of Belfry']),
      ...(typeof Input === 'string' && PLACEHOLDER.test(Input)
        ? [
            'placeholders such as <aws.scheduler.scheduled-time> stay as they are in the payload: the worker has nominalAt and runId instead',
          ]
        : []),
      ...(Object.keys(others).length === 0
        ? []
        : [
            `${Object.keys(others).join(', ')} of the target ${Object.keys(others).length === 1 ? 'is' : 'are'} not taken over`,
          ]),
    ],
  }
}

function retryOf({ MaximumRetryAttempts, MaximumEventAgeInSeconds }: Fields): Record<string, unknown> {
  return {
    ...(typeof MaximumRetryAttempts === 'number'
      ? { maxAttempts: Math.min(MaximumRetryAttempts + 1, MAX_ATTEMPTS) }
      : {}),
    ...(typeof MaximumEventAgeInSeconds === 'number' ? { maxAge: `PT${MaximumEventAgeInSeconds}S` } : {}),
  }
}

function readInput(input: unknown): unknown {
  if (typeof input !== 'string') return input
  try {
    return JSON.parse(input)
  } catch {
    return input
  }
}
