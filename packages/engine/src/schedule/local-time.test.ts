import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../job/definition.ts'
import { localTimeOf } from './local-time.ts'

const at = (text: string) => Date.parse(text)
const berlin = (cron: string): ResolvedSpec => ({ cron, timezone: 'Europe/Berlin' })

test.each<[ResolvedSpec, string, ReturnType<typeof localTimeOf>]>([
  [berlin('0 9 * * *'), '2026-01-15T08:00:00Z', { utc: '2026-01-15T08:00:00Z', local: '2026-01-15T09:00:00+01:00' }],
  [
    berlin('30 2 * * *'),
    '2026-03-29T01:00:00Z',
    { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00', dst: 'gap' },
  ],
  // 03:00 fires for itself.
  [berlin('0 3 * * *'), '2026-03-29T01:00:00Z', { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00' }],
  [berlin('0 * * * *'), '2026-03-29T01:00:00Z', { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00' }],
  [
    berlin('30 2 * * *'),
    '2026-10-25T00:30:00Z',
    { utc: '2026-10-25T00:30:00Z', local: '2026-10-25T02:30:00+02:00', dst: 'repeat' },
  ],
  [
    berlin('*/30 * * * *'),
    '2026-10-25T01:30:00Z',
    { utc: '2026-10-25T01:30:00Z', local: '2026-10-25T02:30:00+01:00', dst: 'repeat' },
  ],
  [berlin('0 3 * * *'), '2026-10-25T02:00:00Z', { utc: '2026-10-25T02:00:00Z', local: '2026-10-25T03:00:00+01:00' }],
  [
    { every: 'P1D', timezone: 'Europe/Berlin', anchor: at('2026-03-01T01:30:00Z') },
    '2026-03-29T01:00:00Z',
    { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00', dst: 'gap' },
  ],
  [
    { every: 'PT30M', timezone: 'Europe/Berlin', anchor: at('2026-03-01T01:30:00Z') },
    '2026-03-29T01:00:00Z',
    { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00' },
  ],
  [
    { cron: '* * * * *', timezone: 'America/St_Johns' },
    '2026-01-15T08:00:00.250Z',
    { utc: '2026-01-15T08:00:00.250Z', local: '2026-01-15T04:30:00.250-03:30' },
  ],
  [
    { cron: '* * * * *', timezone: 'Africa/Monrovia' },
    '1971-01-15T08:00:00Z',
    { utc: '1971-01-15T08:00:00Z', local: '1971-01-15T07:15:30-00:44:30' },
  ],
  [
    { cron: '* * * * *', timezone: 'UTC' },
    '2026-01-15T08:00:00Z',
    { utc: '2026-01-15T08:00:00Z', local: '2026-01-15T08:00:00+00:00' },
  ],
])('%j at %s', (spec, instant, expected) => {
  expect(localTimeOf(spec, at(instant))).toEqual(expected)
})
