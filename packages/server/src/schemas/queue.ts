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
    ...shownLimits,
    createdAt: instant('When it was first named.'),
  },
  { title: 'Queue', additionalProperties: true },
)

export const pauseBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: MAX_REASON, examples: ['the mail server is being moved'] })) },
  { additionalProperties: false },
)
