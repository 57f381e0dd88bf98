import { Type } from 'typebox'
import { jobStatus } from './job.ts'

/** What lists of jobs and actions on many of them can ask for; all of it must hold. */
export const jobFilter = Type.Object(
  {
    status: Type.Optional(jobStatus),
    queue: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  { title: 'JobFilter', additionalProperties: false },
)
