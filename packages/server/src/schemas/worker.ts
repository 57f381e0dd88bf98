import { Type } from 'typebox'
import { instant, nullable } from './page.ts'
import { queueName } from './queue.ts'

const MAX_CAPACITY = 1_000_000
const MAX_QUEUES = 100
const MAX_LABELS = 64
const MAX_LABEL = 255

/** What a worker or one of its calls is called. */
const word = (description: string, ...examples: string[]) =>
  Type.String({ minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9._:-]+$', description, examples })

export const workerId = word(
  'The name of a worker, new with every start: letters, digits, `.`, `_`, `:` and `-`.',
  'mailer-7f3a',
)
export const requestId = word(
  'Your own name for this call: whoever repeats it gets the same leases again, as far as they are still held.',
  'lease-000042',
)

export const workerStatus = Type.Enum(['active', 'draining', 'lost'], {
  description: '`draining`: it is leased nothing more. `lost`: it has not been seen for 30 s.',
})

const labels = Type.Record(Type.String({ maxLength: MAX_LABEL }), Type.String({ maxLength: MAX_LABEL }), {
  maxProperties: MAX_LABELS,
  description: 'Your own names and values; at most 64.',
  examples: [{ zone: 'eu-1' }],
})

export const workerInput = Type.Object(
  {
    queues: Type.Optional(Type.Array(queueName, { maxItems: MAX_QUEUES, description: 'What it works for.' })),
    capacity: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_CAPACITY, description: 'How many runs it performs at once.' }),
    ),
    version: Type.Optional(Type.String({ minLength: 1, maxLength: 128, examples: ['1.4.0'] })),
    labels: Type.Optional(labels),
    draining: Type.Optional(
      Type.Boolean({
        description: 'True: it is leased nothing more, and told so with its next lease call or heartbeat.',
      }),
    ),
  },
  {
    title: 'WorkerInput',
    additionalProperties: false,
    examples: [{ queues: ['emails'], capacity: 20, version: '1.4.0' }, { draining: true }],
  },
)

export const worker = Type.Object(
  {
    id: workerId,
    status: workerStatus,
    queues: Type.Array(Type.String()),
    capacity: nullable(Type.Integer({ description: 'How many runs it performs at once, if it said so.' })),
    version: nullable(Type.String()),
    labels: Type.Record(Type.String(), Type.String()),
    startedAt: instant('When it was first seen.'),
    lastSeenAt: instant('When it last called.'),
    inFlight: Type.Integer({ description: 'How many runs it held then, without those whose leases have ended since.' }),
  },
  { title: 'Worker' },
)

export const scale = Type.Object(
  {
    queue: queueName,
    workers: Type.Integer({ description: 'How many workers there should be.' }),
    slots: Type.Integer({ description: 'How many runs they should perform at once, together.' }),
    backlog: Type.Integer({ description: 'Runs that wait for a worker; counted up to 100,001.' }),
    running: Type.Integer({ description: 'Runs that are being performed.' }),
    serviceMs: nullable(
      Type.Integer({
        description:
          'How long an attempt took in the last five minutes; null: none has ended, and a second is assumed.',
      }),
    ),
    arrivalsPerSecond: Type.Number({ description: 'Attempts that became due, per second of the last minute.' }),
    targetLagMs: Type.Integer(),
    perWorker: Type.Integer(),
  },
  { title: 'Scale' },
)
