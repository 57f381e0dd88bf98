import { Type } from 'typebox'
import { instant, nullable } from './page.ts'

export const batchId = Type.String({
  description: 'The id of a batch.',
  examples: ['019a2f5e-aa10-7a3b-9d55-3f1c2b4a6d71'],
})

export const batch = Type.Object(
  {
    batchId,
    name: nullable(Type.String()),
    total: Type.Integer({ description: 'How many jobs it has, without the one that runs at its end.' }),
    open: Type.Integer({ description: 'How many of them have not ended.' }),
    succeeded: Type.Integer(),
    failed: Type.Integer({ description: 'Lost ones among them.' }),
    canceled: Type.Integer(),
    skipped: Type.Integer({ description: 'Those that were not needed, or did not start in time.' }),
    progress: Type.Number({ description: 'From 0 to 1: how many have ended.' }),
    onFinishJobId: nullable(Type.String({ description: 'The job that runs when all others have finished.' })),
    createdAt: instant('When it was created.'),
    createdBy: nullable(Type.String({ description: 'The API key, or the program, that created it.' })),
    finishedAt: nullable(instant('When the last of its jobs ended; null while one is open, or open again.')),
  },
  { title: 'Batch' },
)
