import { Type } from 'typebox'
import { onlyCompares } from '../validation.ts'
import { jobId, runId } from './ids.ts'
import { instant, instantText } from './page.ts'
import { parentRun } from './run.ts'
import { requestId, workerId } from './worker.ts'

const MAX_LEASES = 1_000
const MAX_WAIT_MS = 30_000
const MIN_LEASE_MS = 1_000
const MAX_LEASE_MS = 3_600_000
export const DEFAULT_LEASE_MS = 30_000
const MAX_ITEMS = 10_000
const MAX_DURATION = 100
const MAX_LINES_PER_CALL = 10_000
const MAX_PROGRESS_TEXT = 1_000

// Anything: what is no token gets its own answer, and the others of the call get theirs.
const token = Type.String({
  description: 'The token of a lease: opaque, and only good for the one attempt.',
})

const EXAMPLE_TOKEN = 'the-token-of-a-lease'

const outcome = Type.Enum(['ok', 'lease_lost', 'unknown_token'], {
  description: '`lease_lost`: the attempt is over, or somebody else’s.',
})
const note = Type.Optional(Type.String({ description: 'What was left out, such as a result over 64 KiB.' }))

const result = Type.Object(
  {
    token,
    status: Type.Enum(['succeeded', 'failed', 'snoozed', 'canceled']),
    result: Type.Optional(Type.Unknown({ description: 'Any JSON; over 64 KiB the run succeeds without it.' })),
    error: Type.Optional(
      Type.Object(
        {
          message: Type.String(),
          class: Type.Optional(
            Type.Enum(['timeout', 'network', 'http_4xx', 'http_5xx', 'rate_limited', 'handler_error', 'lost'], {
              default: 'handler_error',
            }),
          ),
          retryable: Type.Optional(Type.Boolean({ description: 'False: it is given up at once, as a dead letter.' })),
        },
        { additionalProperties: false },
      ),
    ),
    retryIn: Type.Optional(
      Type.String({
        maxLength: MAX_DURATION,
        description: 'When the next attempt may start, whatever the backoff says; `snoozed` needs it.',
        examples: ['90s', 'PT15M'],
      }),
    ),
    durationMs: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'How long the handler worked.' }),
    ),
  },
  { title: 'Completion', additionalProperties: false },
)
const toldResults = Type.Array(Type.Object({ token: Type.String(), outcome, note }))

export const leaseBody = onlyCompares(
  'token',
  Type.Object(
    {
      workerId,
      max: Type.Optional(
        Type.Integer({ minimum: 1, maximum: MAX_LEASES, default: 1, description: 'How many runs at most.' }),
      ),
      waitMs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_WAIT_MS,
          default: 0,
          description:
            'How long to wait for the first run, if there is none now. From 10 s on it may end up to half a second early.',
        }),
      ),
      leaseMs: Type.Optional(
        Type.Integer({
          minimum: MIN_LEASE_MS,
          maximum: MAX_LEASE_MS,
          default: DEFAULT_LEASE_MS,
          description: 'For how long they are leased; every heartbeat extends a lease by as much.',
        }),
      ),
      requestId: Type.Optional(requestId),
      results: Type.Optional(
        Type.Array(result, {
          maxItems: MAX_ITEMS,
          description:
            'How attempts ended, as for `POST /v1/leases/complete`: done at once, and answered with the call; so a worker that takes one run after the other needs one call for each.',
        }),
      ),
      prefetch: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_LEASES,
          default: 0,
          description:
            'How many of `max` would have to wait at the worker; runs of jobs with `delivery: at_most_once` are only given into the others.',
        }),
      ),
      begins: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            'The worker says that work begins, where a run has `begin`. Otherwise the work of such a run begins with this answer: a worker that dies with it has lost an `at_most_once` run, or used up the last attempt.',
        }),
      ),
    },
    { additionalProperties: false, examples: [{ workerId: 'mailer-7f3a', max: 10, requestId: 'lease-000042' }] },
  ),
)

const leasedRun = Type.Object(
  {
    runId,
    jobId,
    nominalAt: instant('The instant it was meant for.'),
    attempt: Type.Integer({ description: 'The number of this attempt, from 1.' }),
    failures: Type.Integer({ description: 'How many attempts have failed and counted.' }),
    token,
    leaseUntil: instant('Until when it is held without a heartbeat.'),
    deadline: instant('When its time is up, if it begins at once. Heartbeats do not extend it.'),
    timeoutMs: Type.Integer({ description: 'How long the work may take from its beginning.' }),
    payload: Type.Optional(Type.Unknown({ description: 'What the job was created with.' })),
    payloadRef: Type.Optional(Type.String({ description: 'Where the payload lies: `GET /v1/payloads/{ref}`.' })),
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    checkpoint: Type.Optional(Type.Unknown({ description: 'What an attempt before this one left last.' })),
    atMostOnce: Type.Optional(
      Type.Literal(true, { description: 'Once begun, it is never given to any worker again.' }),
    ),
    begin: Type.Optional(
      Type.Literal(true, {
        description:
          'Send a heartbeat with `begun` before the work begins, and begin only if it is answered with `ok`.',
      }),
    ),
    traceparent: Type.String({ description: 'W3C trace context.' }),
    parents: Type.Optional(
      Type.Array(parentRun, { description: 'Of a job that waits for others: how those ended, and their results.' }),
    ),
  },
  { title: 'LeasedRun' },
)

const draining = Type.Optional(Type.Literal(true, { description: 'The worker shall finish what it has and go.' }))

export const leaseAnswer = Type.Object(
  {
    runs: Type.Array(leasedRun),
    results: Type.Optional(toldResults),
    onceWaiting: Type.Optional(
      Type.Literal(true, {
        description:
          'Runs of `at_most_once` wait for a slot. A worker that leases ahead should ask without `prefetch`, or they wait until nothing else is left.',
      }),
    ),
    cancelRequested: Type.Optional(
      Type.Array(Type.String(), { description: 'Tokens of runs that this worker holds and that shall stop.' }),
    ),
    draining,
  },
  { title: 'Leased' },
)

const logLine = Type.Object(
  {
    line: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description:
          'Its number in this attempt; one that is sent twice is stored once. Lines after the 1,000th are not.',
      }),
    ),
    level: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error'], { default: 'info' })),
    message: Type.String({ description: 'Cut after 8,192 characters.' }),
    at: Type.Optional(instantText('When; else now.')),
  },
  { additionalProperties: false },
)

const heartbeatItem = Type.Object(
  {
    token,
    checkpoint: Type.Optional(Type.Unknown({ description: 'Any JSON of at most 64 KiB, for the next attempt.' })),
    progress: Type.Optional(
      Type.Object(
        {
          value: Type.Number({ minimum: 0, maximum: 1 }),
          text: Type.Optional(Type.String({ maxLength: MAX_PROGRESS_TEXT })),
        },
        { additionalProperties: false, examples: [{ value: 0.5, text: '50 of 100' }] },
      ),
    ),
    logs: Type.Optional(Type.Array(logLine, { maxItems: MAX_LINES_PER_CALL })),
    begun: Type.Optional(Type.Literal(true, { description: 'The work begins when this is answered with `ok`.' })),
  },
  { title: 'Heartbeat', additionalProperties: false },
)

export const heartbeatBody = onlyCompares(
  'token',
  Type.Object(
    { workerId, leases: Type.Array(heartbeatItem, { maxItems: MAX_ITEMS }) },
    {
      additionalProperties: false,
      examples: [
        {
          workerId: 'mailer-7f3a',
          leases: [{ token: EXAMPLE_TOKEN, progress: { value: 0.5 }, logs: [{ line: 1, message: 'half of it' }] }],
        },
      ],
    },
  ),
)

export const heartbeatAnswer = Type.Object({
  leases: Type.Array(
    Type.Object({
      token: Type.String(),
      outcome: Type.Enum(['ok', 'cancel_requested', 'lease_lost', 'unknown_token'], {
        description: '`cancel_requested`: stop, and complete it as `canceled`.',
      }),
      leaseUntil: Type.Optional(instant('Until when it is now held.')),
      note,
    }),
  ),
  draining,
})

export const completeBody = onlyCompares(
  'token',
  Type.Object(
    { workerId, results: Type.Array(result, { maxItems: MAX_ITEMS }) },
    {
      additionalProperties: false,
      examples: [
        { workerId: 'mailer-7f3a', results: [{ token: EXAMPLE_TOKEN, status: 'succeeded', result: { sent: 3 } }] },
      ],
    },
  ),
)

export const completeAnswer = Type.Object({ results: toldResults })

export const releaseBody = onlyCompares(
  'token',
  Type.Object(
    {
      workerId,
      leases: Type.Array(
        Type.Object(
          {
            token,
            begun: Type.Optional(
              Type.Literal(false, {
                description: 'The work never began: the run is ready in its old turn, and history has nothing of it.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        { maxItems: MAX_ITEMS },
      ),
    },
    { additionalProperties: false, examples: [{ workerId: 'mailer-7f3a', leases: [{ token: EXAMPLE_TOKEN }] }] },
  ),
)

export const releaseAnswer = Type.Object({
  leases: Type.Array(Type.Object({ token: Type.String(), outcome })),
})
