import { describe, expect, test } from 'vitest'
import { readICalendar } from './read-icalendar.ts'

const BOUNDS = { now: Date.UTC(2026, 10, 15), maxDays: 5_000, maxName: 200 }

const calendar = (...lines: string[]): string =>
  ['BEGIN:VCALENDAR', 'VERSION:2.0', ...lines, 'END:VCALENDAR'].join('\r\n')
const event = (...lines: string[]): string => calendar('BEGIN:VEVENT', ...lines, 'END:VEVENT')

const read = (text: string) => readICalendar(text, BOUNDS)
const datesOf = (text: string): string[] => {
  const { days, problem } = read(text)
  expect(problem).toBeNull()
  return days.map(({ date }) => date)
}

describe('an event is the days that it covers', () => {
  const GOOD: [name: string, text: string, dates: string[]][] = [
    ['a date', event('DTSTART;VALUE=DATE:20261225'), ['2026-12-25']],
    ['a date without VALUE', event('DTSTART:20261225'), ['2026-12-25']],
    [
      'an end is the first day that is free',
      event('DTSTART;VALUE=DATE:20261225', 'DTEND;VALUE=DATE:20261227'),
      ['2026-12-25', '2026-12-26'],
    ],
    ['an end that equals its start', event('DTSTART;VALUE=DATE:20261225', 'DTEND;VALUE=DATE:20261225'), ['2026-12-25']],
    [
      'a span over a leap day',
      event('DTSTART;VALUE=DATE:20280228', 'DTEND;VALUE=DATE:20280301'),
      ['2028-02-28', '2028-02-29'],
    ],
    ['an instant is its date', event('DTSTART:20261231T233000Z'), ['2026-12-31']],
    ['a local time is its date', event('DTSTART;TZID=Europe/Berlin:20261231T000000'), ['2026-12-31']],
    ['a zone in quotes with a colon', event('DTSTART;TZID="GMT+01:00":20261231T000000'), ['2026-12-31']],
    ['hours of one day', event('DTSTART:20261224T120000', 'DTEND:20261224T180000'), ['2026-12-24']],
    ['up to midnight', event('DTSTART:20261224T120000', 'DTEND:20261225T000000'), ['2026-12-24']],
    ['past midnight', event('DTSTART:20261224T120000', 'DTEND:20261225T000100'), ['2026-12-24', '2026-12-25']],
    ['a length instead of an end', event('DTSTART;VALUE=DATE:20261225', 'DURATION:P2D'), ['2026-12-25', '2026-12-26']],
    [
      'a length in weeks',
      event('DTSTART;VALUE=DATE:20261201', 'DURATION:P1W'),
      ['01', '02', '03', '04', '05', '06', '07'].map((day) => `2026-12-${day}`),
    ],
    ['one that was called off', event('DTSTART:20261225', 'STATUS:CANCELLED'), []],
    [
      'further dates',
      event('DTSTART:20261225', 'RDATE;VALUE=DATE:20270101,20270501'),
      ['2026-12-25', '2027-01-01', '2027-05-01'],
    ],
    [
      'names in small letters',
      'begin:vcalendar\nbegin:vevent\ndtstart;value=date:20261225\nend:vevent\nend:vcalendar\n',
      ['2026-12-25'],
    ],
    ['a mark of its encoding', `\u{FEFF}${event('DTSTART:20261225')}`, ['2026-12-25']],
    [
      'an alarm inside',
      event('DTSTART:20261225', 'BEGIN:VALARM', 'TRIGGER:-PT1H', 'RRULE:FREQ=DAILY', 'END:VALARM'),
      ['2026-12-25'],
    ],
    [
      'a zone that has rules of its own',
      calendar(
        'BEGIN:VTIMEZONE',
        'BEGIN:STANDARD',
        'DTSTART:16010101T030000',
        'RRULE:FREQ=YEARLY;BYSETPOS=1',
        'END:STANDARD',
        'END:VTIMEZONE',
        'BEGIN:VEVENT',
        'DTSTART:20261225',
        'END:VEVENT',
      ),
      ['2026-12-25'],
    ],
    [
      'two calendars in one text',
      `${event('DTSTART:20261225')}\n${event('DTSTART:20270101')}`,
      ['2026-12-25', '2027-01-01'],
    ],
  ]
  test.each(GOOD)('%s', (_name, text, dates) => expect(datesOf(text)).toEqual(dates))
})

describe('a yearly rule is followed for 20 years from now', () => {
  test('a fixed date', () => {
    const dates = datesOf(event('DTSTART;VALUE=DATE:20241225', 'RRULE:FREQ=YEARLY'))
    expect(dates).toEqual(Array.from({ length: 23 }, (_, i) => `${2024 + i}-12-25`))
  })

  const RULES: [rule: string, start: string, first: string[]][] = [
    ['FREQ=YEARLY;BYMONTH=11;BYDAY=4TH', '20241128', ['2024-11-28', '2025-11-27', '2026-11-26', '2027-11-25']],
    ['FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO', '20250526', ['2025-05-26', '2026-05-25', '2027-05-31', '2028-05-29']],
    ['FREQ=YEARLY;BYDAY=1MO', '20260105', ['2026-01-05', '2027-01-04', '2028-01-03']],
    ['FREQ=YEARLY;BYMONTHDAY=-1;BYMONTH=2', '20260228', ['2026-02-28', '2027-02-28', '2028-02-29']],
    ['FREQ=YEARLY', '20240229', ['2024-02-29', '2028-02-29', '2032-02-29']],
    [
      'FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8',
      '20241105',
      ['2024-11-05', '2028-11-07', '2032-11-02'],
    ],
    ['FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1', '20260101', ['2026-01-01', '2026-07-01', '2027-01-01']],
    ['freq=yearly;wkst=mo', '20260101', ['2026-01-01', '2027-01-01']],
  ]
  test.each(RULES)('%s from %s', (rule, start, first) => {
    expect(datesOf(event(`DTSTART;VALUE=DATE:${start}`, `RRULE:${rule}`)).slice(0, first.length)).toEqual(first)
  })

  test('COUNT and UNTIL end it, the last day included, and EXDATE leaves days out', () => {
    const start = 'DTSTART;VALUE=DATE:20251225'
    expect(datesOf(event(start, 'RRULE:FREQ=YEARLY;COUNT=2'))).toEqual(['2025-12-25', '2026-12-25'])
    expect(datesOf(event(start, 'RRULE:FREQ=YEARLY;UNTIL=20271225'))).toHaveLength(3)
    expect(datesOf(event(start, 'RRULE:FREQ=YEARLY;UNTIL=20271224T235959Z'))).toHaveLength(2)
    expect(datesOf(event(start, 'RRULE:FREQ=YEARLY;COUNT=2', 'EXDATE;VALUE=DATE:20261225'))).toEqual(['2025-12-25'])
  })

  test('an event of several days has all of them every year', () => {
    const dates = datesOf(
      event('DTSTART;VALUE=DATE:20251225', 'DTEND;VALUE=DATE:20251227', 'RRULE:FREQ=YEARLY;COUNT=2'),
    )
    expect(dates).toEqual(['2025-12-25', '2025-12-26', '2026-12-25', '2026-12-26'])
  })
})

test('the summary is the name of the day: unfolded, unescaped, in one line, and cut', () => {
  const text = event('DTSTART:20261225', 'SUMMARY;LANGUAGE=de:Erster\\, und', '  zweiter\\nTag\\; ja')
  expect(read(text).days).toEqual([{ date: '2026-12-25', name: 'Erster, und zweiter Tag; ja' }])
  const long = read(event('DTSTART:20261225', `SUMMARY:${'x'.repeat(1_000)}`)).days
  expect(long[0]?.name?.length).toBeLessThanOrEqual(BOUNDS.maxName)
})

describe('what cannot be understood is told with its line, and nothing is taken', () => {
  const BAD: [name: string, text: string, problem: RegExp][] = [
    ['no calendar at all', 'hello', /^line 1: "hello" has no colon/],
    ['nothing', '', /^line 1: the text must begin with BEGIN:VCALENDAR/],
    ['something before it', 'X-A:1\nBEGIN:VCALENDAR', /^line 1: BEGIN:VCALENDAR must come before "X-A:1"/],
    ['something after it', `${event('DTSTART:20261225')}\nX-A:1`, /^line 7: BEGIN:VCALENDAR must come before/],
    ['an event outside', 'BEGIN:VEVENT\nEND:VEVENT', /^line 1: BEGIN:VCALENDAR/],
    ['no event', calendar('X-WR-CALNAME:empty'), /^line 4: there is no VEVENT/],
    ['no end', 'BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225', /^line 3: the text ends before END:VEVENT/],
    ['another end', 'BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR', /^line 3: END:VCALENDAR ends nothing/],
    ['a blank at first', ' BEGIN:VCALENDAR', /^line 1: begins with a blank/],
    ['a bad name', event('DT START:20261225'), /^line 4: .* is no NAME:value/],
    ['a bad parameter', event('DTSTART;DATE:20261225'), /^line 4: "DATE" is no parameter/],
    ['no start', event('SUMMARY:x'), /^line 3: the event has no DTSTART/],
    ['a date that is none', event('DTSTART:20260230'), /^line 4: there is no day 20260230/],
    ['a date in another form', event('DTSTART:2026-12-25'), /^line 4: "2026-12-25" is no date/],
    ['an hour that is none', event('DTSTART:20261225T250000'), /^line 4: there is no time 250000/],
    ['an end before the start', event('DTSTART:20261225', 'DTEND:20261224'), /^line 3: the event ends/],
    ['a year and a day', event('DTSTART:20260101', 'DTEND:20270103'), /^line 3: the event has 367 days; at most 366/],
    ['a bad length', event('DTSTART:20261225', 'DURATION:1D'), /^line 5: "1D" is no duration/],
    [
      'a weekly rule',
      event('DTSTART:20261225', 'RRULE:FREQ=WEEKLY'),
      /^line 5: RRULE with FREQ=WEEKLY cannot be expanded: FREQ=YEARLY/,
    ],
    ['a rule without FREQ', event('DTSTART:20261225', 'RRULE:COUNT=1'), /^line 5: RRULE with FREQ=\(none\)/],
    ['BYSETPOS', event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;BYSETPOS=1'), /^line 5: RRULE with "BYSETPOS"/],
    ['BYWEEKNO', event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;BYWEEKNO=20'), /^line 5: RRULE with "BYWEEKNO"/],
    ['a month 13', event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;BYMONTH=13'), /^line 5: BYMONTH must be .* 1 to 12/],
    ['a day of no week', event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;BYDAY=XX'), /^line 5: BYDAY must be such as/],
    ['a part twice', event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;COUNT=1;COUNT=2'), /^line 5: "COUNT=2" is no part/],
    [
      'more rules than holidays',
      calendar(...Array<string>(201).fill('BEGIN:VEVENT\nDTSTART:20261225\nRRULE:FREQ=YEARLY\nEND:VEVENT')),
      /^line 803: more than 200 events that repeat/,
    ],
    ['EXRULE', event('DTSTART:20261225', 'EXRULE:FREQ=YEARLY'), /^line 5: EXRULE cannot be expanded/],
    ['a moved instance', event('DTSTART:20261225', 'RECURRENCE-ID:20261225'), /^line 5: RECURRENCE-ID cannot/],
    ['a name that cannot be stored', event('DTSTART:20261225', 'SUMMARY:a\0b'), /^line 5: SUMMARY has a character/],
    ['a folded line keeps its number', event('DTSTART:2026', ' 0230'), /^line 4: there is no day 20260230/],
    [
      'too many days',
      event('DTSTART:20261225', 'RRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU'),
      /^line 3: a calendar has at most 5000 days/,
    ],
  ]
  test.each(BAD)('%s', (_name, text, problem) => {
    const result = read(text)
    expect(result.problem).toMatch(problem)
    expect(result.days).toEqual([])
  })
})

test('no text of a mebibyte takes more than a second of work', () => {
  const rule = ['BEGIN:VEVENT', 'DTSTART:19700101', 'RRULE:FREQ=YEARLY;BYDAY=53MO', 'END:VEVENT'].join('\n')
  const texts = [
    calendar(...Array<string>(200).fill(rule)),
    event('DTSTART:20261225', `SUMMARY:${'\\,'.repeat(500_000)}`),
    event('DTSTART:20261225', `X;${'A="b;:";'.repeat(100_000)}:y`),
    `BEGIN:VCALENDAR\n${' x\n'.repeat(340_000)}`,
  ]
  for (const text of texts) {
    const began = process.cpuUsage()
    read(text)
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(1_000)
  }
})
