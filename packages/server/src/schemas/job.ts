import { Type } from 'typebox'
import { httpTarget } from './http-target.ts'
import { jobId, runId } from './ids.ts'
import { instant, nullable } from './page.ts'
import { DESCRIPTION, schedule } from './schedule.ts'

export const jobStatus = Type.Enum(['active', 'paused', 'completed', 'canceled', 'succeeded', 'failed'], {
  type: 'string',
  description:
    'A one-off is active or paused, then succeeded, failed or canceled; a recurring job active or paused, then completed or canceled.',
})

const retry = Type.Object(
  {
    maxAttempts: Type.Optional(Type.Integer()),
    backoff: Type.Optional(
      Type.Object({
        type: Type.String(),
        initial: Type.Optional(Type.String()),
        factor: Type.Optional(Type.Number()),
        max: Type.Optional(Type.String()),
        delays: Type.Optional(Type.Array(Type.String())),
        jitter: Type.Number(),
      }),
    ),
    maxAge: Type.Optional(Type.String()),
  },
  { description: 'As it was given; null: the default.' },
)

const after = Type.Object(
  {
    jobs: Type.Array(jobId),
    batchId: Type.Optional(Type.String({ description: 'It waits for all jobs of this batch, and names none.' })),
    on: Type.Enum(['success', 'failure', 'finish']),
    onParentFailure: Type.Enum(['cancel', 'run', 'block']),
  },
  { description: 'The jobs that it waits for, or follows.' },
)

const JOB = {
  jobId,
  tenant: Type.String(),
  name: nullable(Type.String()),
  status: jobStatus,
  schedule: nullable(schedule),
  after: nullable(after),
  batchId: nullable(Type.String({ description: 'The batch that it was created in.' })),
  http: nullable(httpTarget),
  queue: Type.String(),
  priority: Type.Integer(),
  concurrency: nullable(
    Type.Object(
      { limit: Type.Integer(), key: nullable(Type.String()), onLimit: Type.Enum(['wait', 'skip', 'cancel_oldest']) },
      {
        description:
          'How many runs may be performed at a time, as the job says; its key may have been given another limit since.',
      },
    ),
  ),
  rateLimit: nullable(
    Type.Object(
      {
        limit: Type.Integer(),
        period: Type.String(),
        burst: Type.Integer(),
        cost: Type.Integer(),
        key: nullable(Type.String()),
      },
      { description: 'How many runs may start in a period, as the job says.' },
    ),
  ),
  payload: Type.Unknown(),
  payloadRef: nullable(Type.String()),
  labels: Type.Record(Type.String(), Type.String()),
  unique: nullable(
    Type.Object(
      { key: Type.String(), while: Type.Optional(Type.String()), onConflict: Type.Optional(Type.String()) },
      { description: 'While it is there, no other job is made under this key.' },
    ),
  ),
  retry: nullable(retry),
  timeout: Type.String({ examples: ['PT5M'] }),
  nextRunAt: nullable(instant('The nominal time to come; null while paused or running.')),
  lastRun: nullable(
    Type.Object({
      id: runId,
      status: Type.String(),
      finishedAt: instant('When it ended.'),
      failureClass: nullable(Type.String()),
      error: nullable(Type.String()),
    }),
  ),
  version: Type.Integer({ description: 'Raised by every change; also the ETag.' }),
  createdAt: instant('When it was created.'),
  updatedAt: instant('When it was last changed.'),
  pausedAt: nullable(instant('Since when it is paused.')),
  pausedReason: nullable(Type.String()),
  pausedBy: nullable(Type.String({ description: 'Who paused it.' })),
}

export const job = Type.Object(JOB, { title: 'Job' })

export const describedJob = Type.Object({ ...JOB, ...DESCRIPTION }, { title: 'DescribedJob' })

const hint = Type.Object({
  code: Type.String({ description: '`crowded_second`: a thousand jobs or more are due in the same second.' }),
  message: Type.String(),
  suggestion: Type.Record(Type.String(), Type.String(), {
    description: 'Fields of a job that would be better.',
    examples: [{ jitter: 'PT30S' }],
  }),
})

export const createdJob = Type.Object(
  {
    jobId,
    status: jobStatus,
    nextRunAt: nullable(instant('When it runs next.')),
    deduplicated: Type.Optional(
      Type.Literal(true, { description: 'The job was there: of the same request, or of the same unique key.' }),
    ),
    replaced: Type.Optional(
      Type.Literal(true, { description: 'The job was there, had not started, and is now as this request says.' }),
    ),
    ...DESCRIPTION,
    hints: Type.Optional(
      Type.Array(hint, { description: 'What would be better, if there is something; the job is made all the same.' }),
    ),
  },
  { title: 'CreatedJob' },
)

export const jobChange = Type.Object(
  {
    changedAt: instant('When.'),
    action: Type.String({ description: 'What was done.', examples: ['update', 'pause'] }),
    actor: Type.String({ description: 'Who did it: the prefix of an API key, `admin`, or a program.' }),
    before: Type.Unknown(),
    after: Type.Unknown(),
  },
  { title: 'JobChange' },
)
