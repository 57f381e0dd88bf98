import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

const FILE = [
  ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'BEGIN:VEVENT', 'DTSTART;VALUE=DATE:20301225', 'SUMMARY:Christmas', ' Day'],
  ...['END:VEVENT', 'END:VCALENDAR', ''],
].join('\r\n')

interface Calendar {
  name: string
  days: { date: string; name?: string }[]
  replanning: boolean
}

test('a calendar is written, read, listed, replaced and deleted', async () => {
  const t = await setup()
  const days = [{ date: '2031-01-01', name: 'New Year' }, '2030-12-25', '2030-12-25']
  const made = await t.call<Calendar>('PUT /v1/calendars/holidays', { days, weekend: ['sun', 'sat'] })
  expect(made).toMatchObject({
    status: 201,
    body: {
      name: 'holidays',
      days: [{ date: '2030-12-25' }, { date: '2031-01-01', name: 'New Year' }],
      dayCount: 2,
      weekend: ['sun', 'sat'],
    },
  })
  const { days: _days, ...item } = made.body
  expect((await t.call('GET /v1/calendars')).body).toMatchObject({
    items: [{ ...item, replanning: expect.any(Boolean) }],
  })
  const again = await t.call<Calendar>('PUT /v1/calendars/holidays', { days: ['2030-12-26'] })
  expect(again).toMatchObject({ status: 200, body: { days: [{ date: '2030-12-26' }], weekend: [] } })
  expect((await t.call('GET /v1/calendars/holidays')).body).toMatchObject({ days: [{ date: '2030-12-26' }] })
  expect((await t.call('DELETE /v1/calendars/holidays')).status).toBe(204)
  expect((await t.call('GET /v1/calendars/holidays')).body).toMatchObject({ status: 404, code: 'not_found' })
  expect((await t.call('DELETE /v1/calendars/holidays')).body).toMatchObject({ status: 404, code: 'not_found' })
})

test('a calendar file is taken as it is, or inside of JSON', async () => {
  const t = await setup()
  const days = [{ date: '2030-12-25', name: 'ChristmasDay' }]
  const type = { 'content-type': 'text/calendar; charset=utf-8' }
  expect(await t.call('PUT /v1/calendars/file', FILE, type)).toMatchObject({ status: 201, body: { days } })
  const both = await t.call('PUT /v1/calendars/json', { icalendar: FILE, days: ['2030-12-24'] })
  expect(both).toMatchObject({ status: 201, body: { days: [{ date: '2030-12-24' }, ...days] } })
  const bad = await t.call('PUT /v1/calendars/file', FILE.replace('20301225', '20301325'), type)
  expect(bad.body).toMatchObject({
    status: 422,
    code: 'invalid_argument',
    errors: [{ path: 'icalendar', message: 'line 4: there is no day 20301325 between 1970 and 2200' }],
  })
  const large = await t.call('PUT /v1/calendars/file', `${FILE}${' '.repeat(1_048_576)}`, type)
  expect(large.body).toMatchObject({
    status: 422,
    errors: [{ message: expect.stringContaining('at most 1048576 bytes') }],
  })
  const notText = await t.call('PUT /v1/calendars/file', Buffer.from([0x42, 0xff]), type)
  expect(notText.body).toMatchObject({ status: 422, detail: expect.stringContaining('not UTF-8') })
  expect((await t.call('GET /v1/calendars/file')).body).toMatchObject({ days })
})

test('all that is wrong with a calendar is said at once, and changes nothing', async () => {
  const t = await setup()
  const bad = { days: ['2030-02-30', { date: '2030-01-01', name: 'a\u0001b' }, { date: 'soon' }], weekend: ['sun'] }
  const answer = await t.call('PUT /v1/calendars/odd', bad)
  expect(answer.body).toMatchObject({
    status: 422,
    errors: [
      { path: 'days[0]', message: 'there is no day 2030-02-30 between 1970 and 2200' },
      { path: 'days[2].date', message: 'must be a date such as "2026-12-25", not "soon"' },
    ],
  })
  const week = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
  const [nothing, all, unknown, badName] = await Promise.all([
    t.call('PUT /v1/calendars/odd', {}),
    t.call('PUT /v1/calendars/odd', { weekend: week }),
    t.call('PUT /v1/calendars/odd', { dayz: ['2030-01-01'] }),
    t.call('PUT /v1/calendars/a%20b', { days: [] }),
  ])
  expect(nothing.body).toMatchObject({ status: 422, code: 'invalid_argument' })
  expect(all.body).toMatchObject({ status: 422 })
  expect(unknown.body).toMatchObject({ status: 422, errors: [{ path: 'dayz', suggestion: 'days' }] })
  expect(badName.status).toBe(422)
  expect((await t.call('GET /v1/calendars/odd')).status).toBe(404)
})

test('jobs follow a calendar that changes, list it, and keep it from being deleted', async () => {
  const t = await setup()
  await t.call('PUT /v1/calendars/free', { days: ['2030-01-01'] })
  const job = {
    queue: 'q',
    payload: 1,
    cron: '0 9 1 1 *',
    startAt: '2030-01-01T00:00:00Z',
    exclude: [{ calendar: 'free' }],
  }
  const { body } = await t.call<{ jobId: string }>('POST /v1/jobs', job)
  const nextOf = async () => (await t.call<{ nextRunAt: string }>(`GET /v1/jobs/${body.jobId}`)).body.nextRunAt
  expect(await nextOf()).toBe('2031-01-01T09:00:00.000Z')
  await t.call('PUT /v1/calendars/free', { days: ['2030-01-02'] })
  await expect.poll(nextOf).toBe('2030-01-01T09:00:00.000Z')
  const { body: changes } = await t.call<{ items: object[] }>(`GET /v1/jobs/${body.jobId}/changes`)
  expect(changes.items.at(-1)).toMatchObject({
    action: 'replan',
    actor: 'calendar free',
    before: { nextRunAt: '2031-01-01T09:00:00.000Z' },
    after: { nextRunAt: '2030-01-01T09:00:00.000Z' },
  })
  expect((await t.call('DELETE /v1/calendars/free')).body).toMatchObject({
    status: 409,
    code: 'calendar_in_use',
    detail: 'active or paused jobs name the calendar "free" (1): change or cancel them first',
  })
})
