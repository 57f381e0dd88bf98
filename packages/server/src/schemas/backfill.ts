import { Type } from 'typebox'
import { jobId } from './ids.ts'
import { instant, instantText, nullable } from './page.ts'

export const backfillId = Type.String({
  description: 'The id of a backfill.',
  examples: ['019a2f5e-9e44-7a3b-8c01-6b7d0e2f4a11'],
})

export const backfillBody = Type.Object(
  {
    from: instantText('The first instant whose time is run.'),
    to: instantText('The first instant whose time is not run any more: the range is half-open.'),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'How many of its runs may be alive at a time; default 1. Unless the overlap policy of the job is `allow`, it is one anyway.',
      }),
    ),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only say what would be run.' })),
    confirmCount: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: 'The `count` that a dry run answered. Must be given for more than 10,000 runs.',
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', dryRun: true }],
  },
)

const notes = Type.Array(Type.String(), {
  description: 'What is not quite as it was asked for, in sentences.',
  examples: [['The schedule begins at 2026-01-05T00:00:00.000Z: there is nothing before it.']],
})

export const backfillPreview = Type.Object(
  {
    count: Type.Integer({ description: 'How many runs it would make.' }),
    leftOut: Type.Integer({ description: 'How many times have or had a run already.' }),
    times: Type.Object(
      {
        first: Type.Array(instant('A time that would be run.')),
        last: Type.Array(instant('A time that would be run.')),
      },
      { description: 'The first and the last few of those that would be run.' },
    ),
    from: instant('Where it would begin.'),
    to: instant('Where it would end.'),
    notes,
  },
  { title: 'BackfillPreview' },
)

const BACKFILL = {
  backfillId,
  jobId,
  status: Type.Enum(['running', 'completed', 'canceled'], {
    description: 'Completed is one all of whose runs have ended; of a canceled one some may still be stopping.',
  }),
  from: instant('The first instant of its range.'),
  to: instant('The first instant behind its range.'),
  position: instant('Times before it have become runs, or were left out.'),
  concurrency: Type.Integer(),
  counts: Type.Object({
    total: Type.Integer({ description: 'Times of the schedule in its range.' }),
    created: Type.Integer({ description: 'Those that have become runs.' }),
    leftOut: Type.Integer({ description: 'Those that had a run already.' }),
    running: Type.Integer({ description: 'Its runs that have not ended, whatever they wait for.' }),
    succeeded: Type.Integer(),
    failed: Type.Integer({ description: 'Lost ones among them.' }),
    canceled: Type.Integer(),
  }),
  createdBy: Type.String({ description: 'The API key, or the program, that asked for it.' }),
  createdAt: instant('When somebody asked for it.'),
  endedAt: nullable(instant('When the last of its runs had ended.')),
}

export const backfill = Type.Object(BACKFILL, { title: 'Backfill' })
export const createdBackfill = Type.Object({ ...BACKFILL, notes }, { title: 'CreatedBackfill' })
