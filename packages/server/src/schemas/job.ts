import { Type } from 'typebox'
import { httpTarget } from './http-target.ts'
import { jobId, runId } from './ids.ts'
import { instant, nullable } from './page.ts'

export const jobStatus = Type.Enum(['active', 'paused', 'completed', 'canceled', 'succeeded', 'failed'], {
  type: 'string',
  description:
    'A one-off is active or paused, then succeeded, failed or canceled; a recurring job active or paused, then completed or canceled.',
})

const schedule = Type.Object(
  {
    runAt: Type.Optional(instant('Of a one-off.')),
    cron: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    every: Type.Optional(Type.String()),
    timezone: Type.Optional(Type.String()),
    startAt: Type.Optional(instant('The first instant that may fire; of an interval, where it is counted from.')),
    endAt: Type.Optional(instant('The first instant that may no longer fire.')),
    catchUp: Type.Optional(Type.Object({ policy: Type.String(), window: Type.String(), max: Type.Integer() })),
  },
  { description: 'When it runs; null: at once.' },
)

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

export const job = Type.Object(
  {
    jobId,
    tenant: Type.String(),
    name: nullable(Type.String()),
    status: jobStatus,
    schedule: nullable(schedule),
    http: nullable(httpTarget),
    queue: Type.String(),
    priority: Type.Integer(),
    payload: Type.Unknown(),
    payloadRef: nullable(Type.String()),
    labels: Type.Record(Type.String(), Type.String()),
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
  },
  { title: 'Job' },
)

export const createdJob = Type.Object(
  {
    jobId,
    status: jobStatus,
    nextRunAt: nullable(instant('When it runs next.')),
    deduplicated: Type.Optional(Type.Literal(true, { description: 'The same request made the job earlier.' })),
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
