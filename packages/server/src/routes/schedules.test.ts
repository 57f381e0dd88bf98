import { expect, test } from 'vitest'
import { oneNodeForAll } from '../../test/api.ts'

const setup = oneNodeForAll()

interface Described {
  jobId: string
  understoodAs: string
  expression: string | null
  timezone: string
  times: { utc: string; local: string; dst?: string }[]
  schedule: object | null
}

test('a preview answers the next times in UTC and in the zone, with what was understood', async () => {
  const t = await setup()
  const asked = { cron: '0 9 * * MON-FRI', timezone: 'europe/berlin', from: '2026-12-24T08:00:00Z', count: 2 }
  const { status, body } = await t.call<Described>('POST /v1/schedules/preview', asked)
  expect(status).toBe(200)
  expect(body).toEqual({
    understoodAs: expect.stringContaining('09:00'),
    expression: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
    times: [
      { utc: '2026-12-25T08:00:00Z', local: '2026-12-25T09:00:00+01:00' },
      { utc: '2026-12-28T08:00:00Z', local: '2026-12-28T09:00:00+01:00' },
    ],
  })
  const exclude = ['2026-12-25', { from: '2026-12-27', to: '2026-12-31' }]
  const without = await t.call<Described>('POST /v1/schedules/preview', { ...asked, exclude })
  expect(without.body.times[0]?.utc).toBe('2027-01-01T08:00:00Z')
})

test('a preview marks times that a change of the clocks concerns', async () => {
  const t = await setup()
  const berlin = { timezone: 'Europe/Berlin', count: 2 }
  const gap = { ...berlin, cron: '30 2 * * *', from: '2027-03-27T12:00:00Z' }
  expect((await t.call<Described>('POST /v1/schedules/preview', gap)).body.times).toEqual([
    { utc: '2027-03-28T01:00:00Z', local: '2027-03-28T03:00:00+02:00', dst: 'gap' },
    { utc: '2027-03-29T00:30:00Z', local: '2027-03-29T02:30:00+02:00' },
  ])
  const repeat = { ...berlin, cron: '30 * * * *', from: '2027-10-31T00:00:00Z' }
  expect((await t.call<Described>('POST /v1/schedules/preview', repeat)).body.times).toEqual([
    { utc: '2027-10-31T00:30:00Z', local: '2027-10-31T02:30:00+02:00', dst: 'repeat' },
    { utc: '2027-10-31T01:30:00Z', local: '2027-10-31T02:30:00+01:00', dst: 'repeat' },
  ])
})

test('what is wrong with a schedule is said by preview as by create, each with its path', async () => {
  const t = await setup()
  const bad = { cron: ['0 9 * * *', 'x'], timezone: 'Mars', exclude: ['2026-02-30'], dst: { gap: 'no' } }
  const preview = await t.call<{ errors: { path: string }[] }>('POST /v1/schedules/preview', bad)
  const create = await t.call<{ errors: { path: string }[] }>('POST /v1/jobs', { queue: 'q', ...bad })
  expect([preview.status, create.status]).toEqual([422, 422])
  expect(preview.body.errors).toEqual(create.body.errors)
  expect(preview.body.errors.map(({ path }) => path)).toEqual(['cron[1]', 'timezone', 'exclude[0]', 'dst.gap'])
  const odd = await t.call('POST /v1/schedules/preview', { crons: '@daily' })
  expect(odd.body).toMatchObject({ status: 422, code: 'invalid_job', errors: [{ path: 'crons', suggestion: 'cron' }] })
})

test('a created job says what was understood, and shows its schedule as it could be sent again', async () => {
  const t = await setup()
  const asked = { when: 'every weekday at 9am', timezone: 'Europe/Berlin', exclude: ['2026-12-25'] }
  const { body: made } = await t.call<Described>('POST /v1/jobs', { queue: 'still', ...asked })
  expect(made).toMatchObject({ expression: '0 9 * * 1-5', timezone: 'Europe/Berlin' })
  expect(made.times).toHaveLength(5)
  const { body: read } = await t.call<Described>(`GET /v1/jobs/${made.jobId}`)
  expect(read).toMatchObject({ schedule: asked, understoodAs: made.understoodAs, times: made.times })
  const again = await t.call<Described>('POST /v1/jobs', { queue: 'still', ...read.schedule })
  expect(again.body).toMatchObject({ understoodAs: made.understoodAs, times: made.times })
  const { body: list } = await t.call<{ items: object[] }>('GET /v1/jobs')
  for (const item of list.items) expect(item).not.toHaveProperty('understoodAs')
  const now = await t.call<Described>('POST /v1/jobs', { queue: 'still', payload: 1 })
  expect(now.body).toMatchObject({ understoodAs: 'now', expression: null, timezone: 'UTC', times: [] })
})

test('previews need no more than reading, and a thousand times of the worst schedule take bounded work', async () => {
  const t = await setup()
  const crons = Array.from({ length: 20 }, (_, i) => `${i} */2 * * * 1-5`)
  const exclude = Array.from({ length: 100 }, (_, i) => ({ cron: `${i % 60} ${i % 24} * * *` }))
  const worst = { cron: crons, timezone: 'Australia/Lord_Howe', exclude, count: 1_000 }
  const { status, body } = await t.call<Described>('POST /v1/schedules/preview', worst)
  expect([status, body.times?.length]).toEqual([200, 1_000])
  const none = { cron: '* * * * * *', exclude: [{ cron: '* * * * * *' }], timezone: 'Europe/Berlin', count: 1_000 }
  expect((await t.call('POST /v1/schedules/preview', none)).body).toMatchObject({ errors: [{ path: 'exclude' }] })
})
