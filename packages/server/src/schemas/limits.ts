import { Type } from 'typebox'
import { nullable } from './page.ts'

const MOST = 1_000_000

const rate = {
  limit: Type.Integer({ minimum: 1, maximum: MOST, description: 'How many runs may start in each period.' }),
  period: Type.String({ maxLength: 64, description: 'A second to 31 days.', examples: ['PT1S', '1m'] }),
}
const burst = Type.Integer({
  minimum: 1,
  maximum: MOST,
  description: 'How many may start at once; as many as `limit`.',
})
const maxRunning = {
  minimum: 1,
  maximum: MOST,
  description: 'How many runs may be under way at a time, on all nodes and workers together. null: no limit.',
  examples: [20],
}
const RATE = {
  additionalProperties: false,
  description: 'How many runs may start in a period, evenly, up to `burst` of them at once. null: no limit.',
  examples: [{ limit: 100, period: 'PT1S', burst: 20 }],
}

/** What somebody says about limits. */
export const limitFields = {
  maxRunning: Type.Optional(nullable(Type.Integer(maxRunning))),
  rateLimit: Type.Optional(nullable(Type.Object({ ...rate, burst: Type.Optional(burst) }, RATE))),
}

/** Limits as they are shown. */
export const shownLimits = {
  maxRunning: nullable(Type.Integer(maxRunning)),
  rateLimit: nullable(Type.Object({ ...rate, burst }, RATE)),
}
