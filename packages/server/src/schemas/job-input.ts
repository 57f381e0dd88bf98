import { Type } from 'typebox'
import { httpTarget } from './http-target.ts'
import { SCHEDULE_INPUT } from './schedule.ts'

const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ description, ...(examples.length > 0 ? { examples } : {}) }))

const backoff = Type.Object(
  {
    type: Type.Optional(Type.Enum(['exponential', 'linear', 'fixed', 'list'], { default: 'exponential' })),
    initial: text('The first delay; default 5 s.', '5s'),
    factor: Type.Optional(Type.Number({ minimum: 1, maximum: 100, default: 2 })),
    max: text('No delay is longer; default 1 h.', '1h'),
    jitter: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'The share of a delay that chance may take away.' }),
    ),
    delays: Type.Optional(
      Type.Array(Type.String(), { description: 'For `list`; the last one holds on.', maxItems: 100 }),
    ),
  },
  { additionalProperties: false },
)

const POLICIES = {
  retry: Type.Optional(
    Type.Object(
      {
        maxAttempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 5 })),
        backoff: Type.Optional(backoff),
        maxAge: text('No attempt starts later than this after the nominal time.', '1d'),
      },
      { additionalProperties: false, description: 'What happens when an attempt fails.' },
    ),
  ),
  timeout: text('How long one attempt may take; default 5 min.', '30s', 'PT5M'),
  priority: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 9,
      default: 5,
      description: 'Higher first; one level is a head start of 30 s.',
    }),
  ),
  fairnessKey: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Runs of one queue that differ in it take turns, however many there are of one: a customer, a campaign. In a queue that all tenants share, tenants take turns.',
      examples: ['customer-42'],
    }),
  ),
  startDeadline: text('A run that has not started this long after its nominal time is skipped.', '5m'),
  delivery: Type.Optional(
    Type.Enum(['at_least_once', 'at_most_once'], {
      default: 'at_least_once',
      description: 'Whether an attempt whose outcome is unknown is repeated, or the run ends as lost.',
    }),
  ),
}

const LIMITS = {
  concurrency: Type.Optional(
    Type.Object(
      {
        limit: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
        key: text(
          'Jobs that name the same key share one limit, the last written; without it, it is the job’s own.',
          'customer-42',
        ),
        onLimit: Type.Optional(
          Type.Enum(['wait', 'skip', 'cancel_oldest'], {
            default: 'wait',
            description: 'What becomes of a run that finds no free slot.',
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          'How many runs may be performed at a time, exactly, on all nodes. A limit of 1 serves them in order of nominal time. The key cannot be changed later.',
        examples: [{ key: 'customer-42', limit: 5 }],
      },
    ),
  ),
  rateLimit: Type.Optional(
    Type.Object(
      {
        limit: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
        period: Type.String({ examples: ['1m', 'PT1H'] }),
        burst: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'How many may start at once; default `limit`.' }),
        ),
        cost: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1, description: 'As how many a run counts.' }),
        ),
        key: text('That of `concurrency`, if both are there.', 'customer-42'),
      },
      {
        additionalProperties: false,
        description: 'How many runs may start in a period; the others wait, in order, and nobody behind them.',
        examples: [{ key: 'customer-42', limit: 100, period: '1m', burst: 10 }],
      },
    ),
  ),
}

const AFTER = {
  after: Type.Optional(
    Type.Object(
      {
        jobs: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
          minItems: 1,
          maxItems: 1_000,
          description: 'Ids of jobs, or `ref`s of the same call.',
        }),
        on: Type.Optional(
          Type.Enum(['success', 'failure', 'finish'], {
            default: 'success',
            description: 'Which ends count. All of the jobs must have ended so.',
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          'Runs when these jobs have ended, instead of at a time. If they are recurring the job stays, and gets a run for each of their nominal times.',
      },
    ),
  ),
  onParentFailure: Type.Optional(
    Type.Enum(['cancel', 'run', 'block'], {
      default: 'cancel',
      description: 'What becomes of a job that waits for success when one of those jobs does not succeed.',
    }),
  ),
}

/** Every field of a job but its key. */
const DEFINITION = {
  ...SCHEDULE_INPUT,
  ...AFTER,
  http: Type.Optional(httpTarget),
  queue: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[A-Za-z0-9._-]+$',
      description: 'Whose workers perform it. With neither `http` nor `queue`: the queue `default`.',
      examples: ['emails'],
    }),
  ),
  payload: Type.Optional(
    Type.Unknown({ description: 'Any JSON, at most 256 KiB: what the worker or the target gets.' }),
  ),
  payloadRef: text('A payload that lies elsewhere, such as one of `PUT /v1/payloads`.', 'pl_019a2f5e7c10'),
  ...POLICIES,
  ...LIMITS,
  labels: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'Your own names and values, to find it again; at most 64.',
      examples: [{ team: 'growth' }],
    }),
  ),
  unique: Type.Optional(
    Type.Object(
      {
        key: Type.String({ minLength: 1, maxLength: 256 }),
        while: Type.Optional(Type.Enum(['queued', 'active', 'both'])),
        onConflict: Type.Optional(Type.Enum(['keep', 'replace', 'reject'])),
      },
      {
        additionalProperties: false,
        description:
          'While a job of the tenant with this key is queued (has not started), active (has started), or both (default: until it has ended), no other is made: the one that is there is kept and answered (default), replaced if it has not started, or the request is rejected (409).',
        examples: [{ key: 'reindex-42', while: 'queued', onConflict: 'replace' }],
      },
    ),
  ),
}

const NAME = {
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: "Unique among the tenant's jobs that still have a future.",
      examples: ['daily-digest'],
    }),
  ),
}

const KEY = {
  idempotencyKey: text('The same request with the same key makes one job only. Also as header.', 'order-4711'),
  idempotencyTtl: text('How long the key is remembered; default 24 h.', '24h'),
}

const RULES =
  'Exactly one of `runAt`, `delay`, `cron`, `every` and `when`; none means now. One of `http`, `queue`, `payload` and `payloadRef` at least.'

const EXAMPLES = [
  { every: '10s', http: { url: 'https://example.com/hooks/tick', method: 'POST' } },
  { name: 'daily-digest', cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', queue: 'emails', payload: { list: 'all' } },
  { when: 'every weekday at 9am', timezone: 'Europe/Berlin', exclude: ['2026-12-25'], queue: 'emails' },
  { runAt: '2026-12-01T09:00:00Z', payloadRef: 'pl_019a2f5e7c10', idempotencyKey: 'order-4711' },
]

/** A job as somebody writes it. The engine judges it and says better what is wrong; this is for readers and tools. */
export const jobInput = Type.Object(
  { ...NAME, ...DEFINITION, ...KEY },
  { title: 'JobInput', additionalProperties: false, description: RULES, examples: EXAMPLES },
)

export const batchInput = Type.Object(
  {
    jobs: Type.Array(
      Type.Object(
        {
          ref: text('A name for it in this call: others wait for it by this, and it is given back in the answer.', 'a'),
          ...NAME,
          ...DEFINITION,
          ...KEY,
        },
        { title: 'BatchJob', additionalProperties: false, description: RULES, examples: EXAMPLES.slice(0, 1) },
      ),
      { minItems: 1, maxItems: 10_000 },
    ),
    batch: Type.Optional(
      Type.Object(
        {
          name: text('For people.', 'nightly import'),
          onFinish: Type.Optional(
            Type.Object(
              { ...NAME, ...DEFINITION, ...KEY },
              {
                additionalProperties: false,
                description: 'A job that runs when all others have finished, however they ended. It says no time.',
                examples: [{ queue: 'reports', payload: { of: 'import' } }],
              },
            ),
          ),
        },
        { additionalProperties: false, description: 'Counts how the jobs end, as one group.' },
      ),
    ),
  },
  { additionalProperties: false },
)

/** A job whose name stands in the address. */
export const namedJobInput = Type.Object(DEFINITION, {
  title: 'NamedJobInput',
  additionalProperties: false,
  description: RULES,
  examples: [{ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', queue: 'emails' }],
})

export const jobPatch = Type.Object(DEFINITION, {
  title: 'JobPatch',
  additionalProperties: false,
  description: 'The fields that change; null takes one away. A new time replaces the old one.',
  examples: [{ cron: '0 10 * * 1-5', timezone: 'Europe/Berlin' }],
})
