import { Type } from 'typebox'
import { instant } from './page.ts'

const MAX_DAYS = 5_000
const MAX_ICALENDAR = 1_048_576
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

export const calendarName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._-]+$',
  description: 'What `exclude: [{"calendar": name}]` calls it: letters, digits, `.`, `_` and `-`.',
  examples: ['holidays'],
})

const date = { type: 'string', description: 'A day, in whatever zone a schedule has.', examples: ['2026-12-25'] }

export const calendarInput = Type.Object(
  {
    days: Type.Optional(
      Type.Array(
        Type.Unsafe<string | { date: string; name?: string }>({
          anyOf: [
            date,
            {
              type: 'object',
              properties: { date, name: { type: 'string', maxLength: 200, examples: ['Christmas Day'] } },
              required: ['date'],
              additionalProperties: false,
            },
          ],
        }),
        { maxItems: MAX_DAYS, examples: [['2026-12-25', { date: '2027-01-01', name: "New Year's Day" }]] },
      ),
    ),
    weekend: Type.Optional(
      Type.Array(Type.Enum([...WEEKDAYS]), {
        maxItems: 6,
        description: 'Weekdays that never are business days; none unless given.',
        examples: [['sat', 'sun']],
      }),
    ),
    icalendar: Type.Optional(
      Type.String({
        maxLength: MAX_ICALENDAR,
        description: 'A calendar file, whose events are taken beside `days`; up to 1 MiB.',
        examples: ['BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nEND:VEVENT\nEND:VCALENDAR\n'],
      }),
    ),
  },
  {
    title: 'CalendarInput',
    additionalProperties: false,
    description: 'All of the calendar: what it held before is replaced. At least one of the three.',
    examples: [{ days: ['2026-12-25', { date: '2027-01-01', name: "New Year's Day" }], weekend: ['sat', 'sun'] }],
  },
)

const COMMON = {
  name: calendarName,
  dayCount: Type.Integer(),
  weekend: Type.Array(Type.String({ description: 'A weekday that never is a business day.', examples: ['sat'] })),
  updatedAt: instant('When it was last changed.'),
  replanning: Type.Boolean({
    description: 'Whether the next times of jobs that name it are still being moved after its last change.',
  }),
}

export const calendarItem = Type.Object(COMMON, { title: 'CalendarItem', additionalProperties: true })

export const calendar = Type.Object(
  {
    ...COMMON,
    days: Type.Array(
      Type.Object({
        date: Type.String({ examples: ['2026-12-25'] }),
        name: Type.Optional(Type.String({ examples: ['Christmas Day'] })),
      }),
      { description: 'In order.' },
    ),
  },
  { title: 'Calendar', additionalProperties: true },
)
