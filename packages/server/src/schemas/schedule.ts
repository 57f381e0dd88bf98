import { Type } from 'typebox'
import { jobId } from './ids.ts'
import { instant, nullable } from './page.ts'

const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ description, ...(examples.length > 0 ? { examples } : {}) }))

const OVERLAPS = ['allow', 'skip', 'buffer_one', 'buffer_latest', 'buffer_all', 'cancel_running'] as const
const CRONS = { type: ['string', 'array'], items: { type: 'string' }, maxItems: 20 }

const exclude = Type.Array(
  Type.Unsafe<string | { from: string; to: string } | { cron: string } | { calendar: string }>({
    anyOf: [
      { type: 'string', description: 'A day, in the zone of the job.', examples: ['2026-12-25'] },
      {
        type: 'object',
        properties: { from: { type: 'string' }, to: { type: 'string' } },
        required: ['from', 'to'],
        additionalProperties: false,
        description: 'Days, of which `to` is the last; or instants, of which `to` is the first after it.',
      },
      { type: 'object', properties: { cron: { type: 'string' } }, required: ['cron'], additionalProperties: false },
      {
        type: 'object',
        properties: { calendar: { type: 'string' } },
        required: ['calendar'],
        additionalProperties: false,
      },
    ],
  }),
  {
    maxItems: 100,
    description: 'Days and times at which a recurring job does not fire.',
    examples: [['2026-12-25', { from: '2026-12-27', to: '2026-12-31' }, { calendar: 'holidays' }]],
  },
)

const dst = Type.Object(
  {
    gap: Type.Optional(Type.Enum(['after', 'skip'], { description: 'A time that the clocks leave out.' })),
    overlap: Type.Optional(Type.Enum(['first', 'last', 'both'], { description: 'A time that comes twice.' })),
  },
  {
    additionalProperties: false,
    description: 'What a change of the clocks does to a `cron`; without it the hour field decides.',
  },
)

/** What says when a job runs, as somebody writes it. */
export const SCHEDULE_INPUT = {
  runAt: text('Once, at this instant. At most 100 years ahead.', '2026-12-01T09:00:00Z'),
  delay: text('Once, after this time.', '10m', 'PT10M'),
  cron: Type.Optional(
    Type.Unsafe<string | string[]>({
      ...CRONS,
      description:
        'Again and again: 5 or 6 fields, names, `L`, `W`, `#`, `H`, `@daily` and friends. Several fire whenever one of them does.',
      examples: ['0 9 * * 1-5', ['0 9 * * 1-5', '0 11 * * 6']],
    }),
  ),
  every: text(
    'Again and again, at this interval from `startAt` on; or a repeating interval.',
    ...['PT15M', '10s', 'P1M', 'R5/2026-12-01T00:00:00Z/PT15M'],
  ),
  when: text('Once, or again and again, in English.', 'every weekday at 9am', 'in 10 minutes'),
  timezone: text('IANA zone of `cron`, `when` and date intervals; default UTC.', 'Europe/Berlin'),
  startAt: text('No run of a recurring job before this.', '2026-12-01T00:00:00Z'),
  endAt: text('No run of a recurring job from this on.', '2027-12-01T00:00:00Z'),
  maxRuns: Type.Optional(Type.Integer({ minimum: 1, description: 'How often a recurring job runs in all.' })),
  exclude: Type.Optional(exclude),
  onExcluded: Type.Optional(
    Type.Enum(['skip', 'next_business_day'], {
      default: 'skip',
      description: 'What becomes of a time on an excluded day.',
    }),
  ),
  dst: Type.Optional(dst),
  overlap: Type.Optional(
    Type.Enum([...OVERLAPS], { default: 'skip', description: 'When a run of a recurring job is still alive.' }),
  ),
  catchUp: Type.Optional(
    Type.Object(
      {
        policy: Type.Optional(Type.Enum(['latest', 'all', 'none'], { default: 'latest' })),
        window: text('How far back; default 1 h.', '1h'),
        max: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, default: 1_000 })),
      },
      { additionalProperties: false, description: 'What a recurring job makes up for after an outage.' },
    ),
  ),
  jitter: text('Delays each run by a stable offset of up to this, to spread load.', '10s'),
}

/** The same, as it is shown: so that it could be sent again. */
export const schedule = Type.Object(
  {
    runAt: Type.Optional(instant('Of a one-off.')),
    cron: Type.Optional(Type.Unsafe<string | readonly string[]>(CRONS)),
    every: Type.Optional(Type.String()),
    when: Type.Optional(Type.String({ description: 'The words, where it was said in English.' })),
    timezone: Type.Optional(Type.String()),
    startAt: Type.Optional(instant('The first instant that may fire; of an interval, where it is counted from.')),
    endAt: Type.Optional(instant('The first instant that may no longer fire.')),
    maxRuns: Type.Optional(Type.Integer()),
    exclude: Type.Optional(Type.Array(Type.Unknown({ description: 'As it was given.' }))),
    onExcluded: Type.Optional(Type.String()),
    dst: Type.Optional(Type.Object({ gap: Type.Optional(Type.String()), overlap: Type.Optional(Type.String()) })),
    overlap: Type.Optional(Type.String({ description: 'Unless it is `skip`.' })),
    catchUp: Type.Optional(Type.Object({ policy: Type.String(), window: Type.String(), max: Type.Integer() })),
    jitter: Type.Optional(Type.String()),
  },
  { description: 'When it runs, as it could be sent again; null: at once.' },
)

const fireTime = Type.Object({
  utc: Type.String({ examples: ['2026-12-01T08:00:00Z'] }),
  local: Type.String({
    description: 'The clock on the wall of the zone, with its offset.',
    examples: ['2026-12-01T09:00:00+01:00'],
  }),
  dst: Type.Optional(
    Type.Enum(['gap', 'repeat'], {
      description: 'A change of the clocks concerns it: the time it was meant for does not exist, or comes twice.',
    }),
  ),
})

/** When something runs, said back. */
export const DESCRIPTION = {
  understoodAs: Type.String({ description: 'What was asked for, as one sentence.' }),
  expression: nullable(
    Type.String({
      description: 'The canonical text: the cron (several joined by ` | `), the interval, or the instant. Null: now.',
      examples: ['0 9 * * 1-5'],
    }),
  ),
  timezone: Type.String({ examples: ['Europe/Berlin'] }),
  times: Type.Array(fireTime, { description: 'The next times; a recurring job shows five.' }),
}

export const previewInput = Type.Object(
  {
    ...SCHEDULE_INPUT,
    from: text('Only times after this one, as if the job were created then; default now.', '2026-12-01T00:00:00Z'),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 5, description: 'How many times.' })),
    jobId: Type.Optional({ ...jobId, description: 'Whose `H` it is; without it, that of a made-up job.' }),
  },
  {
    title: 'PreviewInput',
    additionalProperties: false,
    description: 'Exactly one of `runAt`, `delay`, `cron`, `every` and `when`; none means now.',
    examples: [{ cron: '30 2 * * *', timezone: 'Europe/Berlin', from: '2027-03-26T00:00:00Z', count: 4 }],
  },
)

export const preview = Type.Object(
  {
    ...DESCRIPTION,
    note: Type.Optional(Type.String({ description: 'What the times do not say by themselves.' })),
  },
  { title: 'Preview' },
)
