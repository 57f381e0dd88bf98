import { readFile } from 'node:fs/promises'
import type { Flags, FlagTable } from '../../command/flags.ts'
import { UsageError } from '../../usage-error.ts'

export const CALENDAR_FLAGS: FlagTable = {
  day: { value: 'date', about: 'a free day: 2026-12-25, or 2026-12-25=Christmas', multiple: true },
  weekend: { value: 'days', about: 'weekdays that never are business days: sat,sun' },
  file: { value: 'path', about: 'a calendar file (.ics), or the calendar as JSON; - reads standard input' },
}

type Fields = Record<string, unknown>

/** The calendar as the API takes it. Whether its days are days is the server's to say. */
export async function readCalendar(flags: Flags, input: () => Promise<string>): Promise<Fields> {
  const file = flags.text('file')
  const calendar = file === undefined ? {} : fieldsOf(file, file === '-' ? await input() : await readText(file))
  const weekend = flags.text('weekend')
  if (weekend !== undefined) calendar.weekend = weekend.split(',').map((day) => day.trim())
  const days = flags.all('day').map(dayOf)
  if (days.length > 0) calendar.days = [...((calendar.days as unknown[] | undefined) ?? []), ...days]
  if (Object.keys(calendar).length > 0) return calendar
  throw new UsageError('there is nothing to write: give --day, --weekend or --file')
}

function dayOf(text: string): string | { date: string; name: string } {
  const equals = text.indexOf('=')
  return equals < 0 ? text : { date: text.slice(0, equals), name: text.slice(equals + 1) }
}

function fieldsOf(file: string, text: string): Fields {
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text) as Fields
    } catch {
      throw new UsageError(`${file} is not JSON`)
    }
  }
  return { icalendar: text }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}
