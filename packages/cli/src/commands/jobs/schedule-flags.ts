import { type Flags, type FlagTable, given } from '../../command/flags.ts'

/** What says when a job runs. */
export const SCHEDULE_FLAGS: FlagTable = {
  at: { value: 'instant', about: 'when: 2027-01-31T09:00:00Z' },
  delay: { value: 'duration', about: 'when: 90s, 10m, 2h, P1D from now' },
  when: { value: 'words', about: 'when: "every weekday at 9am", "in 10 minutes"' },
  cron: { value: 'expression', about: 'when: "0 9 * * 1-5", again and again', multiple: true },
  every: { value: 'duration', about: 'when: 10s, PT15M, P1M, again and again; or R5/2027-01-01T00:00:00Z/PT15M' },
  timezone: { value: 'zone', about: 'of --when, --cron and --every: Europe/Berlin (UTC)' },
  'start-at': { value: 'instant', about: 'nothing before' },
  'end-at': { value: 'instant', about: 'nothing from then on' },
  'max-runs': { value: 'n', about: 'so many runs and no more' },
  exclude: {
    value: 'days',
    about: 'not then: 2026-12-25, 2026-12-24..2026-12-31, calendar:holidays, cron:"* 12 * * *"',
    multiple: true,
  },
  'on-excluded': { value: 'policy', about: 'instead of that day: skip or next_business_day (skip)' },
  'dst-gap': { value: 'policy', about: 'a time that the clocks leave out: after or skip' },
  'dst-overlap': { value: 'policy', about: 'a time that comes twice: first, last or both' },
}

export function scheduleFields(flags: Flags): Record<string, unknown> {
  const crons = flags.all('cron')
  const dst = given({ gap: flags.text('dst-gap'), overlap: flags.text('dst-overlap') })
  return {
    runAt: flags.text('at'),
    delay: flags.text('delay'),
    when: flags.text('when'),
    cron: crons.length > 1 ? crons : crons[0],
    every: flags.text('every'),
    timezone: flags.text('timezone'),
    startAt: flags.text('start-at'),
    endAt: flags.text('end-at'),
    maxRuns: flags.number('max-runs'),
    exclude: flags.is('exclude') ? flags.all('exclude').map(exclusion) : undefined,
    onExcluded: flags.text('on-excluded'),
    dst: Object.keys(dst).length > 0 ? dst : undefined,
  }
}

function exclusion(text: string): unknown {
  const [, kind, value] = /^(calendar|cron):(.*)$/s.exec(text) ?? []
  if (kind !== undefined) return { [kind]: value?.trim() }
  const [from, to] = text.split('..')
  return to === undefined ? text : { from, to }
}
