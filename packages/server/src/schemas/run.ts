import { Type } from 'typebox'
import { jobId, runId } from './ids.ts'
import { instant, nullable } from './page.ts'

const RUN_STATUSES = [
  'waiting',
  'blocked',
  'ready',
  'running',
  'succeeded',
  'failed',
  'canceled',
  'lost',
  'skipped',
] as const
const FAILURE_CLASSES = [
  'timeout',
  'network',
  'http_4xx',
  'http_5xx',
  'rate_limited',
  'handler_error',
  'lease_expired',
  'canceled',
  'lost',
  'circuit_open',
  'invalid_target',
  'start_deadline',
] as const
const CAUSES = ['schedule', 'create', 'trigger', 'backfill', 'chain', 'catch_up'] as const

export const runStatus = Type.Enum([...RUN_STATUSES], { description: 'Where the run is, or how it ended.' })
export const canceled = Type.Object({
  status: Type.Enum(['canceled', 'canceling'], {
    description:
      '`canceled`: it is not performed, now or later. `canceling`: a run is being performed, and may still succeed.',
  }),
})
export const failureClass = Type.Enum([...FAILURE_CLASSES], {
  description: 'What kind of failure the last attempt was.',
})

const SUMMARY = {
  id: runId,
  jobId,
  tenant: Type.String(),
  nominalAt: instant('The instant it was meant for.'),
  dueAt: instant('When it may start; of a run that is over, when its last attempt might.'),
  status: runStatus,
  attempt: Type.Integer({ description: 'The number of its latest attempt; 0 before the first.' }),
  failures: Type.Integer({ description: 'How many attempts have failed and counted.' }),
  queue: Type.String(),
  cause: nullable(Type.String({ description: `Why it exists: ${CAUSES.join(', ')}.` })),
  jobVersion: Type.Integer(),
  result: Type.Unknown(),
  progress: Type.Unknown(),
  failureClass: nullable(Type.String({ description: `One of ${FAILURE_CLASSES.join(', ')}.` })),
  error: nullable(Type.String()),
  finishedAt: nullable(instant('When it ended.')),
}

/** A run as lists show it. */
export const runSummary = Type.Object(SUMMARY, { title: 'RunSummary' })

const response = Type.Object(
  {
    headers: Type.Record(Type.String(), Type.String()),
    body: Type.String({ description: 'The first 4 KiB, secrets left out.' }),
    truncated: Type.Boolean(),
    timings: Type.Record(Type.String(), Type.Number(), {
      description: 'Milliseconds: dnsMs, connectMs, firstByteMs, totalMs.',
    }),
  },
  { description: 'What an HTTP target answered.' },
)

const attempt = Type.Object(
  {
    number: Type.Integer({
      description:
        'The row of an end without a lease (`leasedAt` is null) has 0 if there was no attempt, else the number after the last one.',
    }),
    counted: Type.Boolean({ description: 'Whether it used up one of `maxAttempts`.' }),
    status: Type.String({ description: 'How it ended.' }),
    failureClass: nullable(Type.String()),
    error: nullable(Type.String()),
    statusCode: nullable(Type.Integer()),
    holder: nullable(Type.String()),
    leasedAt: nullable(instant('When it was given to somebody.')),
    startedAt: nullable(instant('When it began.')),
    finishedAt: instant('When it ended.'),
    durationMs: nullable(Type.Integer()),
    response: Type.Optional(Type.Union([response, Type.Null()])),
  },
  { title: 'Attempt' },
)

export const parentRun = Type.Object(
  {
    jobId,
    ref: Type.Optional(Type.String({ description: 'Its name in the call that made both.' })),
    runId: nullable(Type.String({ description: 'Null: it has not ended, or has no run of this time.' })),
    status: nullable(Type.String({ description: 'How it ended.' })),
    result: Type.Unknown(),
    resultLeftOut: Type.Optional(
      Type.Literal(true, { description: 'All results together were too much: get this one by its run.' }),
    ),
  },
  { title: 'ParentRun' },
)

export const run = Type.Object(
  {
    ...SUMMARY,
    cancelRequested: Type.Boolean(),
    leaseUntil: nullable(instant('Until when its worker has it without another heartbeat.')),
    blockedBy: nullable(
      Type.String({
        description: 'The run of the same job that a blocked one waits for; null when it is woken in a moment.',
      }),
    ),
    payload: Type.Optional(
      Type.Unknown({ description: "What it was triggered with; others are performed with their job's." }),
    ),
    backfillId: Type.Optional(Type.String({ description: 'Of a run that a backfill made.' })),
    parents: Type.Optional(Type.Array(parentRun, { description: 'Of a job that waits for others: how those ended.' })),
    waitsFor: Type.Optional(
      Type.Object(
        {
          count: Type.Integer({ description: 'How many.' }),
          jobs: Type.Array(
            Type.Object({
              jobId,
              hasFailed: Type.Boolean({
                description: 'It did not succeed: the run is blocked until it does, or somebody runs or cancels it.',
              }),
            }),
            { description: 'Ten of them at most, those that failed first.' },
          ),
        },
        { description: 'The jobs that a blocked run waits for.' },
      ),
    ),
    limitedBy: Type.Optional(
      Type.Object(
        {
          key: nullable(Type.String({ description: "Null: the limit is the job's own." })),
          limit: nullable(
            Type.Integer({ description: 'How many are performed at a time; null: only their rate is limited.' }),
          ),
          rate: nullable(Type.Object({ limit: Type.Integer(), periodMs: Type.Integer() })),
          heldBy: Type.Array(Type.String(), { description: 'Runs that hold its slots: a few, the oldest first.' }),
        },
        { description: 'The limit that a blocked run waits for.' },
      ),
    ),
    attempts: Type.Array(attempt, {
      description: 'Those that have ended, oldest first; of very many, the last thousand.',
    }),
  },
  { title: 'Run' },
)

export const logLine = Type.Object(
  {
    attempt: Type.Integer(),
    line: Type.Integer(),
    level: Type.String({ examples: ['info'] }),
    loggedAt: instant('When it was written.'),
    message: Type.String(),
  },
  { title: 'LogLine' },
)
