import { expect, test } from 'vitest'
import { HOUR } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

test('jobs are found by label, time of creation, next run, and a part of their name or id', async () => {
  const { kit, own } = await startTenants()
  const create = async (job: object) => (await own.jobs.create({ queue: 'q', ...job })).jobId
  const begin = kit.now()
  const digest = await create({ name: 'Daily digest', cron: '0 9 * * *', labels: { team: 'mail', tier: '' } })
  kit.clock.advance(HOUR)
  const later = kit.now()
  const report = await create({ delay: '1h', labels: { team: 'ops=eu' } })
  kit.clock.advance(1)
  const ready = await create({})
  const found = async (filter: Parameters<typeof own.jobs.list>[0]) =>
    (await own.jobs.list(filter)).items.map(({ jobId }) => jobId)
  expect(await found({ label: 'team' })).toEqual([report, digest])
  expect(await found({ label: 'team=mail' })).toEqual([digest])
  expect(await found({ label: 'team=ops=eu' })).toEqual([report])
  expect(await found({ label: 'tier=' })).toEqual([digest])
  expect(await found({ label: 'none' })).toEqual([])
  expect(await found({ createdFrom: later })).toEqual([ready, report])
  expect(await found({ createdTo: later })).toEqual([digest])
  expect(await found({ createdFrom: begin, createdTo: begin })).toEqual([])
  expect(await found({ createdTo: begin.toISOString() })).toEqual([])
  expect(await found({ nextRunFrom: new Date(later.getTime() + HOUR) })).toEqual([report, digest])
  expect(await found({ nextRunTo: new Date(later.getTime() + HOUR) })).toEqual([ready])
  expect(await found({ text: 'DIGEST' })).toEqual([digest])
  expect(await found({ text: digest.slice(0, 30) })).toEqual([digest])
  expect(await found({ text: '%' })).toEqual([])
  const pages = [await own.jobs.list({ limit: 1, createdFrom: later })]
  pages.push(await own.jobs.list({ limit: 1, createdFrom: later, cursor: pages[0]?.nextCursor as string }))
  expect(pages.flatMap(({ items }) => items.map(({ jobId }) => jobId))).toEqual([ready, report])
  for (const wrong of [
    { label: '=x' },
    { label: '' },
    { text: '\0' },
    { createdFrom: 'x' },
    { nextRunTo: 5 },
    { status: 'activ' },
  ])
    expect((await refusalOf(own.jobs.list(wrong as never))).code, JSON.stringify(wrong)).toBe('invalid_argument')
  await own.jobs.list({
    createdFrom: new Date(-8.64e15),
    createdTo: new Date(8.64e15),
    nextRunFrom: new Date(-8.64e15),
  })
})
