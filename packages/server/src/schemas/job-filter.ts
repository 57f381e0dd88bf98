import { Type } from 'typebox'
import { jobStatus } from './job.ts'
import { instantText } from './page.ts'

/** What lists of jobs and actions on many of them can ask for; all of it must hold. */
export const jobFilter = {
  status: Type.Optional(jobStatus),
  queue: Type.Optional(Type.String({ minLength: 1, maxLength: 128, examples: ['emails'] })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'The whole name.' })),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 400,
      description: 'A label that is there, or has this value.',
      examples: ['team=growth'],
    }),
  ),
  createdFrom: Type.Optional(instantText('Created at this instant or later.')),
  createdTo: Type.Optional(instantText('Created before this instant.')),
  nextRunFrom: Type.Optional(instantText('Runs next at this instant or later.')),
  nextRunTo: Type.Optional(instantText('Runs next before this instant.')),
  text: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'Stands in the name, or at the beginning of the id.' }),
  ),
}
