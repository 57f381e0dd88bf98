import { Type } from 'typebox'
import { instant, nullable } from './page.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })
const isComplete = Type.Boolean({ description: 'False: there are more than were counted.' })

const RUNS = {
  ready: count('May run now.'),
  running: count('Being performed.'),
  waiting: count('Between two attempts, or for another reason not yet ready.'),
}

const outcomes = (description: string) =>
  Type.Object(
    {
      succeeded: count('Runs that succeeded.'),
      failed: count('Runs that failed for good.'),
      canceled: count('Runs that were canceled.'),
      lost: count('Runs whose outcome is unknown and that may not be repeated.'),
      skipped: count('Runs that had not started by their deadline.'),
      retried: count('Attempts that failed and are followed by another.'),
      isComplete,
    },
    { description },
  )

export const stats = Type.Object(
  {
    runs: Type.Object({
      ...RUNS,
      oldestReadyMs: nullable(Type.Integer({ description: 'How long the oldest ready run has been due.' })),
      isComplete,
      queues: Type.Array(Type.Object({ name: Type.String(), ...RUNS }), {
        description: 'Those with the most runs first, a hundred at most.',
      }),
    }),
    lastHour: outcomes('What ended within the last hour.'),
    lastDay: outcomes('What ended within the last 24 hours.'),
    deadLetters: Type.Object({ count: count('Runs that were given up.'), isComplete }),
    nextDue: Type.Object({
      at: nullable(instant('When a job is due next.')),
      isComplete: Type.Boolean({ description: 'False: perhaps one is due sooner.' }),
    }),
  },
  { title: 'Stats' },
)
