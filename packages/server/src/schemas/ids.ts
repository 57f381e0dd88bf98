import { Type } from 'typebox'

// Without a pattern: what is not an id is not found, like an id that nobody has.
export const jobId = Type.String({
  description: 'The id of a job.',
  examples: ['019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70'],
})
export const runId = Type.String({
  description: 'The id of a run: its job, a dot, and its nominal time.',
  examples: ['019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70.mh8w3k00'],
})

export const jobParams = Type.Object({ jobId }, { additionalProperties: false })
