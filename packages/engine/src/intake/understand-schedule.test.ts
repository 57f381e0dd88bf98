import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { understandJob } from './understand-job.ts'

const now = Date.UTC(2026, 0, 15, 10)
const understand = (input: object, context: object = {}) => understandJob({ queue: 'q', ...input }, { now, ...context })

const scheduleOf = (input: object) => understand(input).definition.schedule

test.each<[input: object, schedule: object]>([
  [{ cron: ['0 9 * * MON-FRI', '0 11 * * 6'] }, { cron: ['0 9 * * 1-5', '0 11 * * 6'], timezone: 'UTC' }],
  [{ cron: ['@daily', '0 0 * * *'] }, { cron: '0 0 * * *', timezone: 'UTC' }],
  [{ cron: ['0 9 * * *'] }, { cron: '0 9 * * *', timezone: 'UTC' }],
  [{ cron: 'H H(0-7) * * *' }, { cron: 'H H(0-7) * * *', timezone: 'UTC' }],
  [{ cron: '0 0 H(25-29) 2 *' }, { cron: '0 0 H(25-29) 2 *', timezone: 'UTC' }],
  [{ cron: '0 0 H(29-31) H/6 *' }, { cron: '0 0 H(29-31) H/6 *', timezone: 'UTC' }],
  [{ cron: '0 0 H(29-31) 2 1' }, { cron: '0 0 H(29-31) 2 1', timezone: 'UTC' }],
  [
    { every: 'R5/2026-02-01T00:00:00Z/PT15M' },
    { every: 'PT15M', timezone: 'UTC', anchor: Date.UTC(2026, 1, 1), count: 5 },
  ],
  [{ every: 'R/2026-02-01T00:00:00Z/P1M' }, { every: 'P1M', timezone: 'UTC', anchor: Date.UTC(2026, 1, 1) }],
  [
    { cron: '0 9 * * *', dst: { gap: 'skip', overlap: 'both' } },
    { cron: '0 9 * * *', timezone: 'UTC', dst: { gap: 'skip', overlap: 'both' } },
  ],
  [
    { cron: '0 9 * * *', dst: {}, exclude: [], overlap: 'skip' },
    { cron: '0 9 * * *', timezone: 'UTC' },
  ],
  [
    {
      cron: '0 9 * * *',
      onExcluded: 'next_business_day',
      exclude: [
        '2026-12-25',
        { from: '2026-07-01', to: '2026-07-31' },
        { from: '2026-03-01T00:00:00Z', to: new Date(Date.UTC(2026, 2, 2)) },
        { cron: '* 12 * * *' },
        { calendar: 'holidays' },
      ],
    },
    {
      cron: '0 9 * * *',
      timezone: 'UTC',
      exclude: [
        { date: '2026-12-25' },
        { from: '2026-07-01', to: '2026-07-31' },
        { fromAt: Date.UTC(2026, 2, 1), toAt: Date.UTC(2026, 2, 2) },
        { cron: '* 12 * * *' },
        { calendar: 'holidays' },
      ],
      onExcluded: 'next_business_day',
    },
  ],
])('%j is kept as it was asked for', (input, schedule) => {
  expect(scheduleOf(input)).toEqual(schedule)
})

test('words that mean one moment are a one-off, and stay beside it', () => {
  const { when, definition } = understand({ when: ' in 10 minutes ' })
  expect(when).toMatchObject({ kind: 'once', at: now + 600_000 })
  expect(definition).toEqual({ queue: 'q', when: { text: 'in 10 minutes' } })
  const berlin = understand({ when: 'tomorrow at 9am', timezone: 'Europe/Berlin' })
  expect(berlin.when).toMatchObject({ at: Date.UTC(2026, 0, 16, 8) })
  expect(berlin.definition.when).toEqual({ text: 'tomorrow at 9am', timezone: 'Europe/Berlin' })
})

test('words that mean more than one are a recurring job, with all that one can have', () => {
  const { definition } = understand({
    when: 'every weekday at 9am',
    timezone: 'Europe/Berlin',
    endAt: '2027-01-01T00:00:00Z',
    exclude: ['2026-12-25'],
    dst: { gap: 'skip' },
    overlap: 'buffer_one',
    maxRuns: 7,
  })
  expect(definition).toEqual({
    queue: 'q',
    when: { text: 'every weekday at 9am' },
    schedule: {
      cron: '0 9 * * 1-5',
      timezone: 'Europe/Berlin',
      endAt: Date.UTC(2027, 0, 1),
      exclude: [{ date: '2026-12-25' }],
      dst: { gap: 'skip' },
    },
    overlap: 'buffer_one',
    maxRuns: 7,
  })
})

test('bounds that the words say are bounds of the job', () => {
  const { definition, when } = understand({ when: 'every day at 9am until 2026-02-01' })
  expect(definition.when).toEqual({ text: 'every day at 9am until 2026-02-01', says: ['endAt'] })
  expect(definition.schedule).toMatchObject({ cron: '0 9 * * *', endAt: expect.any(Number) })
  expect(when).toMatchObject({ maxRuns: null })
})

test('all six words for overlap are understood', () => {
  for (const overlap of ['allow', 'buffer_one', 'buffer_latest', 'buffer_all', 'cancel_running'] as const) {
    expect(understand({ every: '1h', overlap }).definition.overlap).toBe(overlap)
  }
})

test('a request in words is the same request however late it is sent again', () => {
  const fingerprint = (input: object, at = now) =>
    understandJob({ queue: 'q', idempotencyKey: 'k', ...input }, { now: at }).idempotency?.fingerprint
  for (const when of ['in 10 minutes', 'tomorrow at 9am', 'every 90 minutes', 'every day at 9am until friday']) {
    expect(fingerprint({ when }, now + 3_600_000), when).toBe(fingerprint({ when }))
  }
  const every = 'R5/PT15M'
  expect(fingerprint({ every }, now + 5_000)).toBe(fingerprint({ every }))
  const exclude = ['2026-12-25']
  const different = [
    fingerprint({ when: 'in 10 minutes' }),
    fingerprint({ when: 'in 11 minutes' }),
    fingerprint({ when: 'in 10 minutes', timezone: 'Europe/Berlin' }),
    fingerprint({ delay: '10m' }),
    fingerprint({ when: 'every day at 9am' }),
    fingerprint({ when: 'every day at 9am', timezone: 'Europe/Berlin' }),
    fingerprint({ when: 'every day at 9am', exclude }),
    fingerprint({ when: 'every day at 9am', exclude, onExcluded: 'next_business_day' }),
    fingerprint({ when: 'every day at 9am', endAt: '2027-01-01T00:00:00Z' }),
    fingerprint({ when: 'every day at 9am', dst: { gap: 'skip' } }),
    fingerprint({ cron: '0 9 * * *' }),
    fingerprint({ cron: '0 9 * * *', exclude }),
    fingerprint({ cron: ['0 9 * * *', '0 10 * * *'] }),
    fingerprint({ every: 'PT15M' }),
    fingerprint({ every: 'R5/PT15M' }),
    fingerprint({ every: 'R5/2026-02-01T00:00:00Z/PT15M' }),
  ]
  expect(new Set(different).size).toBe(different.length)
})

test('words keep what they were understood as, until they are said otherwise', () => {
  const when = 'every 90 minutes'
  const first = understand({ when })
  const { schedule } = first.definition
  if (!schedule || !('anchor' in schedule)) throw new Error('an interval was expected')
  const understood = { kind: 'recurring', cron: null, every: 'PT1H30M', startAt: schedule.anchor }
  const known = { text: when, timezone: 'UTC', understood }
  const later = { now: now + 3_600_000, known }
  expect(understand({ when }, later).definitionJson).toBe(first.definitionJson)
  expect(understand({ when: 'every 100 minutes' }, later).definitionJson).not.toContain(String(schedule.anchor))
})

/** A job that is right but for what is given, the path of the complaint, a piece of its message, and what is suggested. */
const cases: [job: object, path: string, message: string, suggestion?: string][] = [
  [{ when: 5 }, 'when', 'must be a text, not 5'],
  [{ when: '' }, 'when', 'must not be empty'],
  [{ when: 'w'.repeat(201) }, 'when', 'at most 200 characters'],
  [{ when: 'every blursday' }, 'when', 'blursday'],
  [{ when: 'every day at 9am', cron: '* * * * *' }, 'when', 'cannot stand beside cron'],
  [{ when: 'every day at 9am', runAt: '2026-02-01T00:00:00Z' }, 'when', 'cannot stand beside runAt'],
  [{ when: 'every day at 9am', delay: '1h' }, 'when', 'cannot stand beside delay'],
  [{ when: 'in 10 minutes', maxRuns: 3 }, 'maxRuns', 'only makes sense for a recurring job'],
  [{ when: 'in 10 minutes', exclude: ['2026-12-25'] }, 'exclude', 'only makes sense for a recurring job'],
  [{ when: 'in 10 minutes', startAt: '2026-02-01T00:00:00Z' }, 'startAt', 'only makes sense', 'runAt'],
  [{ when: 'every day at 9am', timezone: 'Europe/Brelin' }, 'timezone', 'there is no time zone', 'Europe/Berlin'],
  [{ when: 'every day at 9am until 2026-02-01', endAt: '2027-01-01T00:00:00Z' }, 'endAt', 'said by the words of when'],
  [{ runAt: '2026-02-01T00:00:00Z', timezone: 'UTC' }, 'timezone', 'an instant has its offset'],
  [{ cron: [] }, 'cron', 'must be 1 to 20 expressions, not 0'],
  [{ cron: Array.from({ length: 21 }, () => '@daily') }, 'cron', 'must be 1 to 20 expressions, not 21'],
  [{ cron: ['@daily', '61 * * * *'] }, 'cron[1]', 'the minute must be 0 to 59'],
  [{ cron: ['@daily', 5] }, 'cron[1]', 'must be a cron expression'],
  [{ cron: ['@daily', '0 0 30 2 *'] }, 'cron[1]', 'never fires'],
  [{ cron: 'H 0 30 2 *' }, 'cron', 'never fires'],
  [{ every: 'R5/PT15M', maxRuns: 3 }, 'maxRuns', 'is said by the repeating interval already'],
  [
    { every: 'R5/2026-02-01T00:00:00Z/PT15M', startAt: '2026-03-01T00:00:00Z' },
    'startAt',
    'is said by the repeating interval already',
  ],
  [{ every: 'R0/PT15M' }, 'every', ''],
  [{ every: 'R5/soon/PT15M' }, 'every', 'soon'],
  [{ every: 'R5/2020-01-01T00:00:00Z/PT15M' }, 'every', 'all of its 5 times lie in the past'],
  [{ every: 'R5/PT15M', dst: { gap: 'skip' } }, 'dst', 'only makes sense beside cron'],
  [{ every: 'P1D', dst: { gap: 'skip' } }, 'dst', 'only makes sense beside cron'],
  [{ when: 'every 90 minutes', dst: { gap: 'skip' } }, 'dst', 'only makes sense beside cron'],
  [{ cron: '@daily', dst: 'skip' }, 'dst', 'must be an object, not "skip"'],
  [{ cron: '@daily', dst: { gap: 'before' } }, 'dst.gap', 'must be one of after, skip'],
  [{ cron: '@daily', dst: { overlap: 'frist' } }, 'dst.overlap', 'must be one of first, last, both', 'first'],
  [{ cron: '@daily', dst: { gaps: 'skip' } }, 'dst.gaps', 'is not a field of dst', 'gap'],
  [{ cron: '@daily', onExcluded: 'skip' }, 'onExcluded', 'has no meaning without exclude'],
  [{ cron: '@daily', exclude: ['2026-12-25'], onExcluded: 'move' }, 'onExcluded', 'must be one of skip, next_business'],
  [{ exclude: ['2026-12-25'] }, 'exclude', 'only makes sense for a recurring job'],
  [{ delay: '1h', onExcluded: 'skip' }, 'onExcluded', 'only makes sense for a recurring job'],
  [{ dst: {} }, 'dst', 'only makes sense for a recurring job'],
  [{ holidays: [] }, 'holidays', 'is not a field of a job', 'exclude'],
  [{ cron: '@daily', exclude: '2026-12-25' }, 'exclude', 'must be a list', '["2026-12-25"]'],
  [{ cron: '@daily', exclude: { calendar: 'a' } }, 'exclude', 'must be a list'],
  [{ cron: '@daily', exclude: Array.from({ length: 101 }, () => '2026-12-25') }, 'exclude', 'at most 100, not 101'],
  [
    { cron: '@daily', exclude: Array.from({ length: 11 }, (_, i) => ({ calendar: `c${i}` })) },
    'exclude',
    'at most 10 calendars, not 11',
  ],
  [{ cron: '@daily', exclude: ['2026-02-30'] }, 'exclude[0]', '"2026-02-30" is a day that does not exist'],
  [{ cron: '0 0 H(29-31) 2 *' }, 'cron', '"0 0 H(29-31) 2 *" would never fire for some jobs'],
  [{ cron: '0 0 H(25-30) H(1-3) *' }, 'cron', 'would never fire for some jobs'],
  [{ cron: '0 0 H(25-31) H(1-6)/4 *' }, 'cron', 'would never fire for some jobs'],
  [{ cron: '@daily', startAt: '0001-01-01T00:00:00Z' }, 'startAt', 'lies before 1970'],
  [{ cron: '@daily', exclude: ['christmas'] }, 'exclude[0]', 'is not a date such as'],
  [{ cron: '@daily', exclude: ['2026-12-25T00:00:00Z'] }, 'exclude[0]', 'is not a date', '2026-12-25'],
  [{ cron: '@daily', exclude: [5] }, 'exclude[0]', 'must be "2026-12-25", { from, to }'],
  [{ cron: '@daily', exclude: [{}] }, 'exclude[0]', 'must be exactly one of'],
  [{ cron: '@daily', exclude: [{ cron: '@daily', calendar: 'a' }] }, 'exclude[0]', 'must be exactly one of'],
  [{ cron: '@daily', exclude: [{ from: '2026-12-25' }] }, 'exclude[0].to', 'is missing'],
  [{ cron: '@daily', exclude: [{ to: '2026-12-25' }] }, 'exclude[0].from', 'is missing'],
  [
    { cron: '@daily', exclude: [{ from: '2026-12-25', to: '2026-12-24' }] },
    'exclude[0].to',
    'not be earlier than from',
  ],
  [
    { cron: '@daily', exclude: [{ from: '2026-12-25', to: '2026-12-26T00:00:00Z' }] },
    'exclude[0].to',
    'must be a date if from is one',
  ],
  [
    { cron: '@daily', exclude: [{ from: '2026-12-25T00:00:00Z', to: '2026-12-25T00:00:00Z' }] },
    'exclude[0].to',
    'must be later than from',
  ],
  [{ cron: '@daily', exclude: [{ cron: '99 * * * *' }] }, 'exclude[0].cron', 'the minute must be'],
  [{ cron: '@daily', exclude: [{ cron: 'H * * * *' }] }, 'exclude[0].cron', 'cannot hold H'],
  [{ cron: '@daily', exclude: [{ calendar: 'two words' }] }, 'exclude[0].calendar', 'may only have', 'two-words'],
  [{ cron: '@daily', exclude: [{ calender: 'a' }] }, 'exclude[0].calender', 'is not a field of exclude[0]', 'calendar'],
  // Schedules without a time
  [{ cron: '0 9 * * *', exclude: [{ cron: '* 9 * * *' }] }, 'exclude', 'leaves out every time'],
  [{ cron: '* * * * * *', exclude: [{ cron: '* * * * * *' }] }, 'exclude', 'leaves out every time'],
  [
    { cron: '0 9 * * *', endAt: '2026-01-18T00:00:00Z', exclude: [{ from: '2026-01-15', to: '2026-01-17' }] },
    'exclude',
    'leaves out every time',
  ],
  [
    { cron: '0 0 1 6 *', endAt: '2026-02-01T00:00:00Z', exclude: ['2026-06-01'] },
    'endAt',
    'comes before the first fire time',
  ],
  [
    { cron: '*/5 * * * *', exclude: ['2026-12-25'], onExcluded: 'next_business_day' },
    'onExcluded',
    'at most 24 times of day',
  ],
]

test.each(cases.map(([job, path, message, suggestion]) => [path, message, job, suggestion] as const))(
  'a schedule is refused because %s %s',
  (path, message, job, suggestion) => {
    let error: unknown
    try {
      understand(job)
    } catch (thrown) {
      error = thrown
    }
    if (!(error instanceof BelfryError)) throw error ?? new Error(`accepted: ${JSON.stringify(job)}`)
    const paths = error.complaints.map((complaint) => complaint.path)
    expect([...new Set(paths)], error.message).toContain(path)
    const complaint = error.complaints.find((one) => one.path === path)
    expect(complaint?.message).toContain(message)
    if (suggestion !== undefined) expect(complaint?.suggestion).toBe(suggestion)
    expect(error.code).toBe('invalid_job')
  },
)
