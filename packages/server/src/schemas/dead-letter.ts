import { Type } from 'typebox'
import { jobId, runId } from './ids.ts'
import { instant, instantText, nullable } from './page.ts'
import { failureClass } from './run.ts'

export const deadLetter = Type.Object(
  {
    runId,
    jobId,
    tenant: Type.String(),
    queue: Type.String(),
    nominalAt: instant('The instant its run was meant for.'),
    dueAt: instant('When its last attempt might start.'),
    diedAt: instant('When it was given up.'),
    attempt: Type.Integer({ description: 'The number of its last attempt.' }),
    failures: Type.Integer(),
    priority: Type.Integer(),
    cause: nullable(Type.String()),
    jobVersion: Type.Integer(),
    failureClass: nullable(Type.String()),
    error: nullable(Type.String()),
  },
  { title: 'DeadLetter' },
)

export const deadLetterFilters = {
  queue: Type.Optional(Type.String({ maxLength: 128 })),
  failureClass: Type.Optional(failureClass),
  job: Type.Optional(jobId),
  from: Type.Optional(instantText('Given up at this instant or later.')),
  to: Type.Optional(instantText('Given up before this instant.')),
}

export const redriveBody = Type.Object(
  {
    runIds: Type.Optional(Type.Array(runId, { minItems: 1, maxItems: 1_000 })),
    filter: Type.Optional(
      Type.Object(deadLetterFilters, {
        additionalProperties: false,
        description: 'Those that match; empty: all of the tenant, a thousand at a time.',
      }),
    ),
    rate: Type.Optional(
      Type.Number({
        minimum: 0.01,
        maximum: 1_000,
        description: 'Runs per second: they become due one after the other, the oldest first, instead of all at once.',
      }),
    ),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only say which ones it would be.' })),
  },
  { additionalProperties: false, examples: [{ filter: { failureClass: 'http_5xx' }, dryRun: true }] },
)
