import { expect, test } from 'vitest'
import { parseWords } from '../../command/parse-words.ts'
import { createJob } from './create.ts'
import { readJob } from './read-job.ts'

const read = (words: string[], input = '') => readJob(parseWords(createJob, words).flags, async () => input)

test('flags become the fields of a job', async () => {
  const words = [
    '--name',
    'hello',
    '--every',
    '10s',
    '--url',
    'https://example.com/',
    '--method',
    'get',
    '--header',
    'A: b: c',
  ]
  expect(await read([...words, '--max-attempts', '3', '--label', 'team=a=b', '--priority', '7'])).toEqual({
    name: 'hello',
    every: '10s',
    http: { url: 'https://example.com/', method: 'GET', headers: { A: 'b: c' } },
    retry: { maxAttempts: 3 },
    labels: { team: 'a=b' },
    priority: 7,
  })
})

test('flags that say when become a schedule', async () => {
  const crons = ['--cron', '0 9 * * 1-5', '--cron', '0 11 * * 6', '--timezone', 'Europe/Berlin', '--dst-gap', 'skip']
  const exclude = ['2026-12-25', '2026-12-27..2026-12-31', 'calendar:holidays', 'cron:* 12 * * *']
  const days = exclude.flatMap((text) => ['--exclude', text])
  expect(await read([...crons, ...days, '--on-excluded', 'next_business_day', '--overlap', 'buffer_one'])).toEqual({
    cron: ['0 9 * * 1-5', '0 11 * * 6'],
    timezone: 'Europe/Berlin',
    dst: { gap: 'skip' },
    exclude: ['2026-12-25', { from: '2026-12-27', to: '2026-12-31' }, { calendar: 'holidays' }, { cron: '* 12 * * *' }],
    onExcluded: 'next_business_day',
    overlap: 'buffer_one',
  })
  expect(await read(['--cron', '@daily', '--queue', 'q'])).toEqual({ cron: '@daily', queue: 'q' })
  expect(await read(['--when', 'every weekday at 9am'])).toEqual({ when: 'every weekday at 9am' })
})

test('a body is JSON if it is JSON, else text; a payload is JSON', async () => {
  expect(await read(['--body', '{"a":1}'])).toEqual({ http: { body: { a: 1 } } })
  expect(await read(['--body', 'a=1'])).toEqual({ http: { body: 'a=1' } })
  expect(await read(['--payload', '{"a":1}'])).toEqual({ payload: { a: 1 } })
  await expect(read(['--payload', 'hello'])).rejects.toThrow(/--payload is not JSON; a text needs its own quotes/)
})

test('flags win over what a file says', async () => {
  const file = JSON.stringify({ cron: '@daily', http: { url: 'https://a/', method: 'PUT' }, retry: { maxAge: '1h' } })
  expect(await read(['--file', '-', '--url', 'https://b/', '--max-attempts', '2'], file)).toEqual({
    cron: '@daily',
    http: { url: 'https://b/', method: 'PUT' },
    retry: { maxAge: '1h', maxAttempts: 2 },
  })
})

test.each([
  [[], /there is nothing to run/],
  [['--header', 'nonsense'], /--header is "nonsense", but must look like "name: value"/],
  [['--priority', 'high'], /--priority is "high", but must be a number/],
  [['--file', '/nowhere/job.json'], /--file \/nowhere\/job.json cannot be read \(ENOENT\)/],
  [['--body', '@/nowhere/body'], /--body \/nowhere\/body cannot be read/],
])('%j is refused with what would be right', async (words, complaint) => {
  await expect(read(words)).rejects.toThrow(complaint)
})

test('a file that is no job is refused', async () => {
  await expect(read(['--file', '-'], '[1]')).rejects.toThrow(/it must be one JSON object/)
  await expect(read(['--file', '-'], '{')).rejects.toThrow(/is not JSON/)
})
