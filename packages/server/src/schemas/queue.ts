import { Type } from 'typebox'
import { shownLimits } from './limits.ts'
import { instant, nullable } from './page.ts'

const MAX_REASON = 1_000

export const queueName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._-]+$',
  description: 'The name of a queue: letters, digits, `.`, `_` and `-`.',
  examples: ['emails'],
})

export const queueKind = Type.Enum(['worker', 'http'], {
  description: 'Who performs its runs: workers, or nodes by HTTP calls.',
})

export const queue = Type.Object(
  {
    name: queueName,
    kind: nullable(Type.String({ description: 'worker or http; null until its first use decides.' })),
    shared: Type.Boolean({ description: 'Whether all tenants use it.' }),
    paused: Type.Boolean(),
    pausedAt: nullable(instant('Since when nothing of it is started.')),
    pauseReason: nullable(Type.String()),
    pausedBy: nullable(Type.String({ description: 'Who paused it.' })),
    maxDepth: nullable(Type.Integer({ description: 'So many runs may wait to be started; null: any number.' })),
    maxAgeMs: nullable(Type.Integer({ description: 'So long the next of them may have waited; null: any time.' })),
    defaults: Type.Object(
      { jitterMs: nullable(Type.Integer({ description: 'What recurring jobs are spread over.' })) },
      { additionalProperties: true },
    ),
    ...shownLimits,
    createdAt: instant('When it was first named.'),
  },
  { title: 'Queue', additionalProperties: true },
)

/** What makes creates be refused (429 `queue_full`), and what jobs of the queue need not say. */
export const queueSettings = {
  maxDepth: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Creates are refused while this many runs wait to be started.',
        examples: [10_000],
      }),
    ),
  ),
  maxAge: Type.Optional(
    nullable(
      Type.String({ description: 'Creates are refused while the next run has waited for longer.', examples: ['PT5M'] }),
    ),
  ),
  defaults: Type.Optional(
    Type.Object(
      {
        jitter: Type.Optional(
          nullable(
            Type.String({
              description: 'What recurring jobs are spread over that say nothing themselves, up to a minute.',
              examples: ['PT10S'],
            }),
          ),
        ),
      },
      { additionalProperties: false },
    ),
  ),
}

export const pauseBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: MAX_REASON, examples: ['the mail server is being moved'] })) },
  { additionalProperties: false },
)
