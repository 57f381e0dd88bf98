import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../src/run-command.ts'
import { BelfryPlace } from './belfry-process.ts'

const place = new BelfryPlace()
let environment: Record<string, string>

beforeAll(async () => {
  const node = place.start(['start'], { PORT: '0' })
  const [, url = ''] = await node.line(/^belfry ready on (\S+)$/)
  environment = { BELFRY_URL: url, BELFRY_DATA_DIR: join(place.directory, '.belfry') }
})
afterAll(() => place.remove())

/** Runs a command in this process; `failure` is what it ended with. */
async function belfry(words: string[], input = '', where = environment) {
  let out = ''
  let note = ''
  const failure = await runCommand(words, where, {
    out: (text) => {
      out += `${text}\n`
    },
    err: (text) => {
      note += `${text}\n`
    },
    width: null,
    input: async () => input,
  }).then(
    () => '',
    (error: Error) => error.message,
  )
  return { out, note, failure }
}

const jobs = async (queue: string) =>
  (await belfry(['jobs', 'list', '--queue', queue, '--json'])).out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const CRONTAB = `
CRON_TZ=Europe/Berlin
MAILTO=ops@example.org
30 2 * * 1-5  /usr/local/bin/backup --all
@reboot       start-agent
61 * * * *    never
*/20 9-17 * * * poll
`

test('a report says what each line becomes and when it runs, and creates nothing', async () => {
  const { out, failure } = await belfry(['import', 'crontab', '-', '--queue', 'shell'], CRONTAB)
  expect(out).toMatch(
    /^line 4: 30 2 \* \* 1-5 \/usr\/local\/bin\/backup --all\n {2}job +crontab\/usr-local-bin-backup-all-[0-9a-f]{8}\n {2}when +\S.*\n {2}next +(\d{4}-\d\d-\d\dT02:30:00\+0[12]:00 \(\S+Z\)\n +){2}/m,
  )
  expect(out).toMatch(/^line 5: @reboot start-agent\n {2}not taken {2}@reboot is no time/m)
  expect(out).toMatch(/^line 6: 61 \* \* \* \* never\n {2}not taken {2}.*minute/m)
  expect(out).toMatch(/^for all of them:\n(.*\n)*? {2}MAILTO is not taken over/m)
  expect(out).toContain('2 of 4 entries can be taken over; nothing has been created: --apply does that')
  expect(failure).toBe('not taken over: line 5, line 6')
  expect(await jobs('shell')).toEqual([])
})

test('applying creates the jobs, and applying again changes nothing but what has changed', async () => {
  const apply = async (text: string) => (await belfry(['import', 'crontab', '-', '--apply'], text)).out
  expect(await apply(CRONTAB)).toContain('2 of 4 entries taken over: 2 created, 0 changed, 0 as before')
  const before = await jobs('crontab')
  expect(before.map(({ schedule }) => schedule.timezone)).toEqual(['Europe/Berlin', 'Europe/Berlin'])
  expect(await apply(CRONTAB)).toContain('0 created, 0 changed, 2 as before')
  expect((await jobs('crontab')).map(({ version }) => version)).toEqual(before.map(({ version }) => version))
  expect(await apply(CRONTAB.replace('30 2', '45 2'))).toContain('0 created, 1 changed, 1 as before')
  expect(await jobs('crontab')).toHaveLength(2)
})

test('a line that is too long is refused alone, in the dry run as when applied', async () => {
  const text = `@daily first\n@daily ${'x'.repeat(300_000)}\n@daily third\n`
  for (const words of [[], ['--apply']]) {
    const { out, failure } = await belfry(['import', 'crontab', '-', '--queue', 'long', ...words], text)
    expect(out).toMatch(/^line 2: .{1,500}…\n {2}not taken {2}its payload would have 300014 bytes as JSON; 262144/m)
    expect(failure).toBe('not taken over: line 2')
  }
  expect(await jobs('long')).toHaveLength(2)
})

test('a suspended CronJob is a paused job, and stays one', async () => {
  const text = JSON.stringify({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'nightly', namespace: 'shop' },
    spec: {
      schedule: '0 3 * * *',
      suspend: true,
      startingDeadlineSeconds: 30,
      concurrencyPolicy: 'Replace',
      jobTemplate: {
        spec: {
          activeDeadlineSeconds: 90,
          template: { spec: { containers: [{ name: 'a', image: 'example.org/a' }] } },
        },
      },
    },
  })
  for (const done of ['created', 'unchanged']) {
    const { out, failure } = await belfry(['import', 'k8s-cronjob', '-', '--apply', '--json'], text)
    expect({ failure, entries: JSON.parse(out).entries }).toMatchObject({ failure: '', entries: [{ done }] })
    expect(await jobs('kubernetes')).toMatchObject([{ name: 'shop/nightly', status: 'paused' }])
  }
})

test('schedules of EventBridge: cron, rate and at', async () => {
  const Target = {
    Arn: 'arn:aws:sqs:eu-central-1:123456789012:work',
    Input: '{"a":1}',
    RetryPolicy: { MaximumRetryAttempts: 185, MaximumEventAgeInSeconds: 86_400 },
  }
  const text = JSON.stringify([
    {
      Name: 'weekly',
      ScheduleExpression: 'cron(0 9 ? * 6L 2100-2101)',
      ScheduleExpressionTimezone: 'Asia/Tokyo',
      Target,
    },
    {
      Name: 'often',
      ScheduleExpression: 'rate(5 minutes)',
      FlexibleTimeWindow: { Mode: 'FLEXIBLE', MaximumWindowInMinutes: 2 },
      Target,
    },
    { Name: 'once', ScheduleExpression: 'at(2100-01-01T00:00:00)', Target },
  ])
  for (const done of ['created', 'unchanged']) {
    const { out, failure } = await belfry(['import', 'eventbridge', '-', '--apply', '--json'], text)
    const { entries } = JSON.parse(out)
    expect({ failure, done: entries.map((entry: { done: string }) => entry.done) }).toEqual({
      failure: '',
      done: [done, done, done],
    })
    expect(entries[0].times[0].utc).toMatch(/^2100-01-29T00:00:00/)
    expect(entries[2].times).toHaveLength(1)
  }
})

test('the command ends with 1 if something was left, with 2 if nothing could be read', async () => {
  const file = join(place.directory, 'crontab')
  writeFileSync(file, '@reboot x\n')
  expect(await place.run(['import', 'crontab', file], environment)).toMatchObject({
    code: 1,
    said: 'belfry: not taken over: line 1\n',
  })
  expect(await place.run(['import', 'eventbridge', file], environment)).toMatchObject({ code: 2, out: '' })
  expect((await belfry(['import', 'crontab', '/nowhere'])).failure).toBe('/nowhere cannot be read (ENOENT)')
  expect((await belfry(['import', 'crontab', '-'], '# nothing')).failure).toMatch(/holds nothing/)
  expect((await belfry(['import', 'crontab', '-', '--timezone', 'Mars'], '@daily x')).failure).toMatch(
    /^--timezone .*no time zone/,
  )
})

test('without a node there is a report all the same, which says what it lacks', async () => {
  const nowhere = { ...environment, BELFRY_URL: 'http://127.0.0.1:1' }
  const { out, note, failure } = await belfry(['import', 'crontab', '-'], '@daily x', nowhere)
  expect(out).toMatch(/when +@daily UTC\n/)
  expect(note).toMatch(/^the times were not checked: no answer from/)
  expect(failure).toBe('')
  expect((await belfry(['import', 'crontab', '-', '--apply'], '@daily x', nowhere)).failure).toMatch(/^no answer/)
})
