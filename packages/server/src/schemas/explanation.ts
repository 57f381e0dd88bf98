import { Type } from 'typebox'
import { jobId, runId } from './ids.ts'
import { instant, nullable } from './page.ts'
import { runStatus } from './run.ts'

const maybe = (description: string) => nullable(instant(description))
const maybeText = (description: string) => nullable(Type.String({ description }))

const doer = (description: string) =>
  nullable(
    Type.Object(
      {
        action: Type.String({ examples: ['pause'] }),
        actor: Type.String({ description: 'The prefix of an API key, `admin`, or a program.' }),
        at: instant('When.'),
        reason: maybeText('What they said why.'),
      },
      { description },
    ),
  )

const attempt = Type.Object({
  number: Type.Integer(),
  counted: Type.Boolean({ description: 'Whether it used up one of `maxAttempts`.' }),
  status: Type.String({ description: 'How it ended.' }),
  failureClass: nullable(Type.String()),
  error: nullable(Type.String()),
  statusCode: nullable(Type.Integer()),
  holder: nullable(Type.String()),
  leasedAt: maybe('When it was given to somebody.'),
  startedAt: maybe('When it began.'),
  finishedAt: instant('When it ended.'),
  durationMs: nullable(Type.Integer()),
})

const run = Type.Object(
  {
    id: runId,
    status: runStatus,
    cause: maybeText('Why it exists.'),
    dueAt: instant('When its latest attempt might start.'),
    attempt: Type.Integer(),
    failures: Type.Integer(),
    latenessMs: nullable(Type.Integer({ description: 'How long after its nominal time the first attempt began.' })),
    startedAt: maybe('When the first attempt began; of a running one, the attempt under way.'),
    finishedAt: maybe('When it ended.'),
    failureClass: nullable(Type.String()),
    error: nullable(Type.String()),
    attempts: Type.Array(attempt, { description: 'Those that have ended, oldest first.' }),
  },
  { description: 'Null: there was none, or not yet.' },
)

const waits = Type.Object(
  {
    queue: nullable(Type.String()),
    until: maybe('Not before.'),
    ahead: nullable(Type.Integer({ description: 'Of a ready run: how many of your own go before it in its queue.' })),
    isAheadComplete: Type.Boolean({ description: 'False: there are more than were counted.' }),
    expectedStartAt: maybe('When its turn comes, if the queue goes on as in the last five minutes.'),
    expectedStartNote: maybeText('Why that is not known.'),
    behind: maybeText('The run that must end first.'),
    jobs: nullable(
      Type.Object(
        { count: Type.Integer(), jobs: Type.Array(Type.Object({ jobId: Type.String(), hasFailed: Type.Boolean() })) },
        { description: 'The jobs that must end first: how many, and a few of them.' },
      ),
    ),
    queuePause: doer('Who paused the queue.'),
    pause: doer('Who paused its tenant, its key or the origin that it calls; `kind` and `name` say what.'),
    keyLimit: nullable(Type.String({ description: 'The limit of its key that it waits for, and who has it.' })),
    queueLimit: nullable(Type.String({ description: 'How the limit of its queue keeps it waiting.' })),
    circuit: nullable(
      Type.Object(
        { origin: Type.String(), until: instant('When a call is tried again.'), reason: Type.String() },
        { description: 'The circuit of its target that is open.' },
      ),
    ),
    after: nullable(
      Type.Object(
        {
          attempt: Type.Integer(),
          status: Type.String(),
          failureClass: nullable(Type.String()),
          error: nullable(Type.String()),
        },
        { description: 'How the attempt before ended.' },
      ),
    ),
  },
  { description: 'What it waits for, if it does.' },
)

const skip = Type.Object(
  {
    from: instant('The first instant of what was skipped together.'),
    to: instant('The first instant after it.'),
    count: nullable(Type.Integer({ description: 'How many nominal times; null: not counted out.' })),
    decidedAt: maybe('When that was decided; null: not while the job is paused.'),
    overlappedWith: maybeText('The run that was alive, or the one of a newer time that was late with this one.'),
  },
  { description: 'What was skipped, if it was.' },
)

export const explanation = Type.Object(
  {
    jobId,
    at: instant('What was asked for.'),
    nominalAt: maybe('The nominal time that this is about; null: there is none at that time.'),
    local: Type.String({
      description: "The same on the clock of the job's zone.",
      examples: ['2026-12-01T10:00:00+01:00'],
    }),
    timezone: Type.String(),
    verdict: Type.Enum(['ran', 'running', 'waiting', 'skipped', 'will_run', 'never', 'unknown'], {
      description: 'What became of it, or will.',
    }),
    reason: nullable(
      Type.String({
        description:
          '`waiting`: jitter, not_promoted, not_planned, ready, queue_paused, tenant_paused, key_paused, origin_paused, queue_limited, origin_limited, key_limited, job_paused, backoff, snoozed, released, circuit_open, redriven, blocked, dependency. `skipped`: overlap, paused, catch_up_expired, start_deadline, on_limit, superseded, canceled, dependency, … `will_run`: job_paused, if it would. `never`: start_at, end_at, count, exclude, dst, expression, max_runs, one_off, dependency, not_created, canceled, completed. `unknown`: history_expired, nothing_recorded, schedule_unreadable.',
      }),
    ),
    sentence: Type.String({
      description: 'All of it in one sentence, for a person.',
      examples: ['The run of 2026-12-01 09:00 UTC succeeded at its first attempt, begun 12 ms after its time.'],
    }),
    version: nullable(Type.Integer({ description: 'The version of the job that counted at that time.' })),
    dueAt: maybe('When it is due, with its jitter.'),
    run: nullable(run),
    waits: nullable(waits),
    skip: nullable(skip),
    by: doer('Who is behind it, if somebody is.'),
    nearest: nullable(
      Type.Object(
        { before: maybe('The last fire time before.'), after: maybe('The first fire time after.') },
        { description: 'The fire times around it, if it is none itself.' },
      ),
    ),
  },
  { title: 'Explanation' },
)
