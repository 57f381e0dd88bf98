import { Type } from 'typebox'
import { instant, nullable } from './page.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })
const minutes = (description: string) => Type.Array(Type.Integer({ minimum: 0 }), { description })

const part = (name: string) =>
  Type.Object({
    name: Type.String({ description: name }),
    total: count('Runs expected of it.'),
    busiest: nullable(Type.Object({ at: instant('Its fullest minute.'), runs: count('Runs expected in it.') })),
    perMinute: nullable(minutes('As above; of the ten with most runs, null of others.')),
  })

export const forecast = Type.Object(
  {
    from: instant('The first minute.'),
    to: instant('The end of the last minute.'),
    asOf: instant('When the timers were looked at, at most a minute ago.'),
    timers: count('Jobs that have a time to come; paused ones have none.'),
    isComplete: Type.Boolean({
      description: 'False: there is too much to count all of it, and numbers are estimates from a part.',
    }),
    areOriginsComplete: Type.Boolean({ description: 'The same of `origins`, for which each job is looked into.' }),
    total: count('Runs expected in all.'),
    perMinute: minutes('Runs expected in each minute, from `from` on.'),
    busiest: Type.Array(
      Type.Object({
        at: instant('The minute.'),
        runs: count('Runs expected in it.'),
        withoutJitter: count('Those of jobs without jitter, which are due at their very second.'),
      }),
      { description: 'The ten fullest minutes, the fullest first.' },
    ),
    queues: Type.Array(part('The queue.'), { description: 'Those with most runs first, a hundred at most.' }),
    origins: Type.Array(part('Scheme, host and port of `http.url`.'), {
      description: 'Of HTTP calls: those with most runs first, a hundred at most.',
    }),
  },
  { title: 'Forecast' },
)
