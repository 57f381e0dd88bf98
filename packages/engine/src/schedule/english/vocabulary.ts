/**
 * The words that English times are made of. Everything is lower case, without the dots and apostrophes of `a.m.` and
 * `o'clock`. A word may stand in several tables (`second`, `may`); what is expected at its place decides.
 */

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'
export type PartOfDay = 'morning' | 'afternoon' | 'evening' | 'night'

function table<Value>(entries: Record<string, Value>): ReadonlyMap<string, Value> {
  return new Map(Object.entries(entries))
}

export const UNITS = table<{ unit: Unit; times: number }>({
  ...spelled('second', 1, ['second', 'seconds', 'sec', 'secs', 's']),
  ...spelled('minute', 1, ['minute', 'minutes', 'min', 'mins', 'm']),
  ...spelled('hour', 1, ['hour', 'hours', 'hr', 'hrs', 'h']),
  ...spelled('day', 1, ['day', 'days', 'd']),
  ...spelled('week', 1, ['week', 'weeks', 'w']),
  ...spelled('week', 2, ['fortnight', 'fortnights']),
  ...spelled('month', 1, ['month', 'months']),
  ...spelled('quarter', 1, ['quarter', 'quarters']),
  ...spelled('year', 1, ['year', 'years']),
})

export const ADVERBS = table<{ unit: Unit; times: number }>({
  hourly: { unit: 'hour', times: 1 },
  daily: { unit: 'day', times: 1 },
  weekly: { unit: 'week', times: 1 },
  fortnightly: { unit: 'week', times: 2 },
  monthly: { unit: 'month', times: 1 },
  quarterly: { unit: 'quarter', times: 1 },
  ...spelled('year', 1, ['yearly', 'annually']),
})

function spelled(unit: Unit, times: number, words: string[]): Record<string, { unit: Unit; times: number }> {
  return Object.fromEntries(words.map((word) => [word, { unit, times }]))
}

export const MONTH_NAMES = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
]
export const WEEKDAY_NAMES = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** 1 is January. */
export const MONTHS: ReadonlyMap<string, number> = new Map([
  ...MONTH_NAMES.map((name, index) => [name.toLowerCase(), index + 1] as const),
  ...MONTH_NAMES.map((name, index) => [name.slice(0, 3).toLowerCase(), index + 1] as const),
  ['sept', 9],
])

/** The days of the week that a word stands for; 0 is Sunday. A plural says by itself that it is meant again and again. */
export const WEEKDAYS = new Map<string, { days: readonly number[]; isPlural: boolean }>()
for (const [day, name] of WEEKDAY_NAMES.entries()) {
  const word = name.toLowerCase()
  for (const singular of [word, word.slice(0, 3)]) WEEKDAYS.set(singular, { days: [day], isPlural: false })
  WEEKDAYS.set(`${word}s`, { days: [day], isPlural: true })
}
for (const [word, day] of Object.entries({ tues: 2, weds: 3, thur: 4, thurs: 4 })) {
  WEEKDAYS.set(word, { days: [day], isPlural: false })
}
for (const [word, days] of Object.entries({ weekday: [1, 2, 3, 4, 5], weekend: [0, 6] })) {
  WEEKDAYS.set(word, { days, isPlural: false })
  WEEKDAYS.set(`${word}s`, { days, isPlural: true })
}

export const NUMBERS = table<number>({
  ...{ a: 1, an: 1, one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8, nine: 9, ten: 10 },
  ...{ eleven: 11, twelve: 12, fifteen: 15, twenty: 20, thirty: 30, forty: 40, fifty: 50, sixty: 60, ninety: 90 },
})

export const ORDINALS = table<number>({
  ...{ first: 1, second: 2, third: 3, fourth: 4, fifth: 5, sixth: 6, seventh: 7, eighth: 8, ninth: 9, tenth: 10 },
})

export const PARTS_OF_DAY = table<PartOfDay>({
  ...{ morning: 'morning', afternoon: 'afternoon', evening: 'evening', night: 'night' },
})

/** Words that are known and have no one meaning: what to say instead. */
export const AMBIGUOUS = table<string>({
  biweekly: 'means twice a week to some and every two weeks to others: say "every 2 weeks on monday"',
  bimonthly: 'means twice a month to some and every two months to others: say "every 2 months"',
  biannually: 'means twice a year to some and every two years to others: say "every 6 months"',
  nightly: 'names no time: say "every day at 2am"',
  noonish: 'names no time: say "at noon"',
  workday: 'depends on holidays: say "weekday", and list the holidays in exclude',
  workdays: 'depends on holidays: say "weekdays", and list the holidays in exclude',
  business: 'depends on holidays: say "weekday", and list the holidays in exclude',
  working: 'depends on holidays: say "weekday", and list the holidays in exclude',
  except: 'is not understood here: give the days on which it shall not fire in exclude',
  excluding: 'is not understood here: give the days on which it shall not fire in exclude',
  reboot: 'is no time: nothing fires when a machine starts',
  sometimes: 'names no time: say "every 6 hours"',
  regularly: 'names no time: say "every day at 9am"',
  soon: 'names no time: say "in 10 minutes"',
  later: 'names no time: say "in 2 hours"',
  end: 'may be meant once or every time: say "last day of this month at 17:00" or "last day of every month at 17:00"',
  never: 'is no time: a job that shall not run can be paused',
})

export const PAST = new Set(['yesterday', 'ago', 'previous'])

/** The words that join others, for suggestions. */
const GRAMMAR = [
  ...[
    'every',
    'each',
    'other',
    'at',
    'on',
    'in',
    'the',
    'of',
    'and',
    'between',
    'from',
    'to',
    'through',
    'until',
    'till',
  ],
  ...['starting', 'beginning', 'ending', 'for', 'times', 'today', 'tonight', 'tomorrow', 'next', 'this', 'last', 'now'],
  ...['noon', 'midday', 'midnight', 'am', 'pm', 'oclock', 'half', 'after', 'time', 'once', 'twice', 'immediately'],
]

export const KNOWN_WORDS: ReadonlySet<string> = new Set([
  ...GRAMMAR,
  ...[UNITS, ADVERBS, MONTHS, WEEKDAYS, NUMBERS, ORDINALS, PARTS_OF_DAY].flatMap((words) => [...words.keys()]),
])
