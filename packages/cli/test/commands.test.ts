import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../src/run-command.ts'
import { BelfryPlace } from './belfry-process.ts'

const place = new BelfryPlace()
const received: IncomingMessage[] = []
const target = createServer((request, response) => {
  received.push(request)
  response.statusCode = request.url === '/broken' ? 400 : 200
  response.end('thank you')
})
let environment: Record<string, string>
let targetUrl: string

beforeAll(async () => {
  await once(target.listen(0, '127.0.0.1'), 'listening')
  targetUrl = `http://127.0.0.1:${(target.address() as AddressInfo).port}`
  const node = place.start(['start'], { PORT: '0', BELFRY_ALLOW_PRIVATE_TARGETS: '1' })
  const [, url = ''] = await node.line(/^belfry ready on (\S+)$/)
  environment = { BELFRY_URL: url, BELFRY_DATA_DIR: join(place.directory, '.belfry') }
})
afterAll(async () => {
  await place.remove()
  target.close()
})

/** Runs a command in this process, as at a terminal of the given width. */
async function belfry(words: string[], { width = null, input = '' }: { width?: number | null; input?: string } = {}) {
  let out = ''
  let note = ''
  const add = (text: string) => `${text}\n`
  await runCommand(words, environment, {
    out: (text) => {
      out += add(text)
    },
    err: (text) => {
      note += add(text)
    },
    width,
    input: async () => input,
  })
  return { out, note }
}

const json = async (words: string[]) => JSON.parse((await belfry([...words, '--json'])).out)
const lines = async (words: string[]) =>
  (await belfry([...words, '--json'])).out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

test('it says which version it is', async () => {
  expect((await belfry(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('a newcomer makes a job that calls a URL every 10 seconds, sees its runs, and cancels it', async () => {
  const create = [
    'jobs',
    'create',
    '--name',
    'hello',
    '--every',
    '10s',
    '--method',
    'GET',
    '--url',
    `${targetUrl}/hello`,
  ]
  const created = await belfry(create)
  expect(created.out).toMatch(
    /^job {12}[0-9a-f-]{36}\nstatus {9}active\nunderstood as {2}every 10 seconds, .*\nnext run {7}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/,
  )

  // Beside one of its schedule that may be at work just now.
  await belfry(['jobs', 'trigger', 'hello', '--overlap', 'allow'])
  const succeeded = () => lines(['runs', 'list', '--job', 'hello', '--status', 'succeeded'])
  await expect.poll(succeeded).not.toEqual([])
  expect(received.some(({ url, method }) => url === '/hello' && method === 'GET')).toBe(true)

  const [run] = await succeeded()
  expect((await belfry(['runs', 'get', run.id])).out).toMatch(/thank you/)
  expect((await belfry(['runs', 'list', '--job', 'hello'])).out).toMatch(/^RUN +STATUS +FOR/)
  expect((await belfry(['jobs', 'list'])).out).toContain('every PT10S')

  expect((await belfry(['jobs', 'pause', 'hello', '--reason', 'a break'])).out).toBe('hello is paused\n')
  expect((await belfry(['jobs', 'get', 'hello'])).out).toContain('paused: a break')
  expect((await belfry(['jobs', 'resume', 'hello'])).out).toBe('hello is active\n')
  expect((await belfry(['jobs', 'cancel', 'hello'])).out).toBe('hello is canceled\n')
  expect(await json(['jobs', 'get', 'hello'])).toMatchObject({ name: 'hello', status: 'canceled' })
})

test('a person asks why a job did not run, and what is to come', async () => {
  const create = ['jobs', 'create', '--name', 'daily', '--cron', '0 9 * * *', '--queue', 'asked', '--payload', '1']
  const { nextRunAt } = await json(create)
  await belfry(['jobs', 'pause', 'daily', '--reason', 'month end'])
  const coming = await belfry(['explain', 'daily', nextRunAt])
  expect(coming.out).toMatch(
    /^verdict {2}will_run: job_paused\nwhy {6}It would run at .*, but the job is paused by .*month end/,
  )
  const [none] = await lines(['explain', 'daily', new Date(Date.parse(nextRunAt) + 3_600_000).toISOString()])
  expect(none).toMatchObject({ verdict: 'never', reason: 'expression', nearest: { before: nextRunAt } })
  const to = new Date(Date.parse(nextRunAt) + 3 * 86_400_000).toISOString()
  const range = await belfry(['explain', 'daily', '--from', nextRunAt, '--to', to], { width: 100 })
  expect(range.out.split('\n').filter((line) => line.includes('will_run'))).toHaveLength(3)
  await belfry([...create.map((word) => (word === 'daily' ? 'tokyo' : word)), '--timezone', 'Asia/Tokyo'])
  // 2099 has no summer time there, whatever the clock of this machine is.
  const [inTokyo] = await lines(['explain', 'tokyo', '2099-12-01T09:00'])
  expect(inTokyo).toMatchObject({ verdict: 'will_run', nominalAt: '2099-12-01T00:00:00.000Z' })
  await belfry(['jobs', 'cancel', 'tokyo'])
  await expect(belfry(['explain', 'daily'])).rejects.toThrow(/give an instant/)
  await expect(belfry(['explain', 'daily', '--from', nextRunAt])).rejects.toThrow(/--to is missing/)
  await belfry(['jobs', 'resume', 'daily'])
  const forecast = await belfry(['forecast'], { width: 100 })
  expect(forecast.out).toMatch(/BUSIEST MINUTES +RUNS/)
  expect(forecast.out).toMatch(/asked +\d/)
  expect(await json(['forecast'])).toMatchObject({ isComplete: true, queues: expect.any(Array) })
})

test('a table fits the terminal, and ids are whole in it', async () => {
  const { jobId } = await json([
    'jobs',
    'create',
    '--queue',
    'wide',
    '--delay',
    '1d',
    '--name',
    'w'.repeat(200),
    '--payload',
    '1',
  ])
  const { out } = await belfry(['jobs', 'list', '--queue', 'wide'], { width: 80 })
  expect(out).toContain(jobId)
  expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})

test('a preview shows what was understood and when it would run, as a table or as JSON', async () => {
  const words = ['preview', '--cron', '0 9 * * 1-5', '--timezone', 'Europe/Berlin', '--from', '2027-03-26T12:00:00Z']
  const { out } = await belfry([...words, '--count', '2'])
  expect(out).toMatch(/^understood as {2}at 09:00 from Monday to Friday, Europe\/Berlin$/m)
  expect(out).toMatch(/^LOCAL +UTC\n2027-03-29T09:00:00\+02:00 {2}2027-03-29T07:00:00Z\n2027-03-30T09:00:00/m)
  expect(await json([...words, '--exclude', '2027-03-29'])).toMatchObject({
    expression: '0 9 * * 1-5',
    times: expect.arrayContaining([{ utc: '2027-03-30T07:00:00Z', local: '2027-03-30T09:00:00+02:00' }]),
  })
  await expect(belfry(['preview'])).rejects.toThrow(/give --cron, --every, --when, --at or --delay/)
  const made = await belfry(['jobs', 'create', '--queue', 'previewed', '--when', 'every day at 9am', '--payload', '1'])
  expect(made.out).toMatch(/^understood as +every day at 09:00, UTC$/m)
})

test('lists are shown page by page up to the limit, and say when there is more', async () => {
  for (let i = 0; i < 3; i++) await belfry(['jobs', 'create', '--queue', 'many', '--delay', '1d', '--payload', '{}'])
  const { out, note } = await belfry(['jobs', 'list', '--queue', 'many', '--limit', '2', '--json'])
  expect(out.trim().split('\n')).toHaveLength(2)
  expect(note).toContain('--limit or --all shows more')
  expect(await lines(['jobs', 'list', '--queue', 'many', '--all'])).toHaveLength(3)
  expect((await belfry(['jobs', 'list', '--queue', 'nobody'])).note).toBe('there are no such jobs\n')
})

test('a job may come as a file on standard input', async () => {
  const input = JSON.stringify({ queue: 'files', delay: '1d', payload: { a: 1 }, labels: { team: 'x' } })
  const { out } = await belfry(['jobs', 'create', '--file', '-', '--json'], { input })
  expect(await json(['jobs', 'get', JSON.parse(out).jobId])).toMatchObject({ payload: { a: 1 }, labels: { team: 'x' } })
})

test('one run may be triggered with a payload of its own, beside another that is alive', async () => {
  const { jobId } = await json(['jobs', 'create', '--queue', 'triggered', '--cron', '@yearly', '--payload', '1'])
  await belfry(['jobs', 'trigger', jobId])
  await expect(belfry(['jobs', 'trigger', jobId, '--payload', '2'])).rejects.toThrow(/\(overlap\)/)
  const { runId } = await json(['jobs', 'trigger', jobId, '--payload', '{"n":2}', '--overlap', 'allow'])
  expect(await json(['runs', 'get', runId])).toMatchObject({ cause: 'trigger', payload: { n: 2 } })
})

test('the times of a schedule that have passed are looked at, run, watched and canceled', async () => {
  await belfry(['jobs', 'create', '--name', 'yearly', '--queue', 'past', '--cron', '0 0 1 1 *', '--payload', '1'])
  const range = ['--from', '2020-01-01T00:00:00Z', '--to', '2023-01-01T00:00:00Z']
  const dry = await belfry(['backfill', 'create', 'yearly', ...range, '--dry-run'])
  expect(dry.out).toMatch(/^would run +3\nleft out +0\n/)
  const made = await json(['backfill', 'create', 'yearly', ...range, '--concurrency', '2'])
  const created = async () => (await json(['backfill', 'get', made.backfillId])).counts.created
  await expect.poll(created).toBe(1)
  expect((await belfry(['backfill', 'list', 'yearly'], { width: 200 })).out).toMatch(/running +1 of 3/)
  expect((await belfry(['backfill', 'cancel', made.backfillId])).out).toBe(
    `backfill ${made.backfillId} is canceled, with 1 of 3 times run\n`,
  )
  expect((await belfry(['backfill', 'get', made.backfillId])).out).toMatch(/status +canceled\n/)
  await expect(belfry(['backfill', 'create', 'yearly', '--from', '2020-01-01T00:00:00Z'])).rejects.toThrow(/--to/)
})

test('a refusal says all that is wrong, with what would be right', async () => {
  await expect(
    belfry(['jobs', 'create', '--queue', 'q', '--cron', 'whenever', '--timezone', 'Europe/Berln']),
  ).rejects.toThrow(/^The job cannot be understood \(invalid_job\)\n {2}cron: .*\n {2}timezone: .*Europe\/Berlin\?$/)
  await expect(belfry(['jobs', 'get', 'nobody'])).rejects.toThrow('there is no job called "nobody" (not_found)')
  await expect(belfry(['runs', 'get', 'nonsense'])).rejects.toThrow(/\((not_found|invalid_request|invalid_argument)\)/)
})

test('a run that failed for good is a dead letter that can be opened again', async () => {
  await belfry(['jobs', 'create', '--url', `${targetUrl}/broken`])
  await expect.poll(() => lines(['dlq', 'list'])).toHaveLength(1)
  expect((await belfry(['dlq', 'list'])).out).toMatch(/http_4xx/)
  expect((await belfry(['dlq', 'redrive', '--all', '--dry-run'])).out).toBe('1 run would be opened again\n')
  expect((await belfry(['dlq', 'redrive', '--failure-class', 'http_4xx', '--rate', '1'])).out).toBe(
    '1 run opened again\n',
  )
  await expect(belfry(['dlq', 'redrive'])).rejects.toThrow(/one of these/)
})

test('keys are made, used, rotated and revoked', async () => {
  const made = await json(['keys', 'create', '--name', 'ci', '--scopes', 'read'])
  expect(made.key).toMatch(/^bk_/)
  const asKey = (words: string[], key: string) =>
    runCommand(
      words,
      { ...environment, BELFRY_API_KEY: key },
      { out: () => {}, err: () => {}, width: null, input: async () => '' },
    )
  await asKey(['jobs', 'list'], made.key)
  await expect(asKey(['jobs', 'create', '--payload', '1'], made.key)).rejects.toThrow(/scope write \(forbidden\)/)
  expect((await belfry(['keys', 'list'])).out).toMatch(/ci .*read/)
  const next = await json(['keys', 'rotate', made.id, '--overlap', '1h'])
  await asKey(['jobs', 'list'], next.key)
  await belfry(['keys', 'revoke', next.id])
  await expect.poll(() => asKey(['jobs', 'list'], next.key).then(String, String)).toMatch(/unauthorized/)
})

test('a tenant has its own jobs', async () => {
  expect((await belfry(['tenants', 'create', 'acme', '--weight', '2', '--active-jobs', '5'])).out).toMatch(
    /activeJobs +5/,
  )
  await belfry(['jobs', 'create', '--tenant', 'acme', '--delay', '1d', '--payload', '1', '--name', 'theirs'])
  expect(await lines(['jobs', 'list', '--tenant', 'acme'])).toHaveLength(1)
  expect(await lines(['jobs', 'list', '--name', 'theirs'])).toEqual([])
  expect(await json(['tenants', 'update', 'acme', '--active-jobs', 'none'])).toMatchObject({
    quotas: { activeJobs: null },
  })
  expect((await belfry(['tenants', 'update', 'acme', '--waiting-runs', '9', '--waiting-seconds', '60'])).out).toMatch(
    /waitingRuns +9\nwaitingSeconds +60/,
  )
  await expect(belfry(['tenants', 'delete', 'acme'])).rejects.toThrow(/\(not_empty\)/)
  expect((await belfry(['tenants', 'list'])).out).toMatch(/acme/)
})

test('a calendar is written from flags or a file, shown, and deleted', async () => {
  await belfry([
    'calendars',
    'put',
    'free',
    '--day',
    '2030-12-25',
    '--day',
    '2031-01-01=New Year',
    '--weekend',
    'sat,sun',
  ])
  const shown = (await belfry(['calendars', 'get', 'free'])).out
  expect(shown).toMatch(/weekend +sun, sat/)
  expect(shown).toMatch(/2031-01-01 +New Year/)
  const input = 'BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20301224\nEND:VEVENT\nEND:VCALENDAR\n'
  await belfry(['calendars', 'put', 'free', '--file', '-', '--day', '2030-12-25'], { input })
  expect(await json(['calendars', 'get', 'free'])).toMatchObject({
    days: [{ date: '2030-12-24' }, { date: '2030-12-25' }],
    weekend: [],
  })
  await expect(belfry(['calendars', 'put', 'free', '--day', 'soon'])).rejects.toThrow(/must be a date/)
  await expect(belfry(['calendars', 'put', 'free'])).rejects.toThrow(/give --day, --weekend or --file/)
  expect(await lines(['calendars', 'list'])).toMatchObject([{ name: 'free', dayCount: 2 }])
  expect((await belfry(['calendars', 'delete', 'free'])).out).toContain('free is deleted')
  await expect(belfry(['calendars', 'get', 'free'])).rejects.toThrow(/there is no calendar free/)
})

test('the command ends with 1 when the node refuses, and says why on standard error', async () => {
  const refused = await place.run(['jobs', 'get', 'nobody'], environment)
  expect(refused).toEqual({ code: 1, out: '', said: 'belfry: there is no job called "nobody" (not_found)\n' })
  const nobody = await place.run(['jobs', 'list'], { ...environment, BELFRY_URL: 'http://127.0.0.1:1' })
  expect(nobody.code).toBe(1)
  expect(nobody.said).toMatch(/^belfry: no answer from http:\/\/127\.0\.0\.1:1 \(.*\); is a node running there\?/)
})

test('the page of the API names every route of a running node', async () => {
  const page = readFileSync(new URL('../../../docs/reference/api.md', import.meta.url), 'utf8')
  const answer = await fetch(`${environment.BELFRY_URL}/openapi.json`)
  const { paths } = (await answer.json()) as { paths: Record<string, object> }
  const missing = Object.keys(paths).filter((path) => {
    const action = /^(\/v1\/\w[\w-]*\/\{\w+\})(\/[a-z]+)$/.exec(path)
    return action ? !page.includes(action[1] as string) || !page.includes(action[2] as string) : !page.includes(path)
  })
  expect(missing).toEqual([])
})

test('a queue is limited if it exists; a mistyped name makes none, and the right one is said', async () => {
  await json(['jobs', 'create', '--queue', 'invoices', '--payload', '1', '--delay', '1h'])
  const limits = ['--max-running', '3', '--max-depth', '500', '--max-age', '5m']
  const refused = 'there is no queue "invoice" (not_found); did you mean invoices?'
  await expect(belfry(['queues', 'limit', 'invoice', ...limits])).rejects.toThrow(refused)
  expect(await json(['queues', 'limit', 'invoices', ...limits])).toMatchObject({
    ...{ name: 'invoices', maxRunning: 3, maxDepth: 500, maxAgeMs: 300_000 },
  })
  expect((await lines(['queues', 'list'])).map(({ name }) => name)).not.toContain('invoice')
})

test('workers are listed with what they hold, and drained by their id', async () => {
  const key = readFileSync(join(place.directory, '.belfry', 'admin-key'), 'utf8').trim()
  const lease = () =>
    fetch(`${environment.BELFRY_URL}/v1/queues/emails/lease`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: 'worker-1', max: 1, waitMs: 10_000 }),
    }).then((answer) => answer.json())
  await json(['jobs', 'create', '--queue', 'emails', '--payload', '1'])
  expect(await lease()).toMatchObject({ runs: [{ payload: 1 }] })
  await expect.poll(() => lines(['workers', 'list', '--queue', 'emails'])).toMatchObject([{ id: 'worker-1' }])
  expect((await belfry(['workers', 'list'], { width: 120 })).out).toMatch(/worker-1 +active +emails/)
  expect((await belfry(['workers', 'drain', 'worker-1'])).out).toContain('worker-1 takes nothing more')
  expect(await lease()).toEqual({ runs: [], draining: true })
  await expect(belfry(['workers', 'drain', 'nobody'])).rejects.toThrow(/no worker nobody/)
})
