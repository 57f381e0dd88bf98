import { expect, test } from 'vitest'
import { type CrontabOptions, readCrontab } from './crontab.ts'
import type { Plan } from './entry.ts'

type JobPlan = Extract<Plan, { kind: 'job' }>

const read = (text: string, options: Partial<CrontabOptions> = {}) =>
  readCrontab(text, { queue: 'crontab', format: 'user', ...options }).entries

/** The one entry, which must be a job. */
function one(text: string, options: Partial<CrontabOptions> = {}): JobPlan {
  const [{ plan } = { plan: null }] = read(text, options)
  if (plan?.kind !== 'job') throw new Error(`it is not taken over: ${plan?.reason}`)
  return plan
}

const reasonOf = (text: string, options: Partial<CrontabOptions> = {}) =>
  read(text, options).map(({ place, plan }) => [place, plan.kind === 'refused' ? plan.reason : 'taken'])

test('a line becomes work for a worker, with the rules of cron', () => {
  expect(one('*/5  9-17 * * mon-fri\t/usr/local/bin/sync --fast  "a b"')).toMatchObject({
    name: expect.stringMatching(/^crontab\/usr-local-bin-sync-fast-a-b-[0-9a-f]{8}$/),
    isSuspended: false,
    job: {
      cron: '*/5 9-17 * * mon-fri',
      timezone: 'UTC',
      queue: 'crontab',
      payload: { command: '/usr/local/bin/sync --fast  "a b"' },
      overlap: 'allow',
      retry: { maxAttempts: 1 },
      catchUp: { policy: 'none' },
    },
  })
})

test('variables hold for the lines below them, comments and commented lines for nothing', () => {
  const [before, after] = read(`
# m h dom mon dow command
0 1 * * * before
# 0 2 * * * switched-off
SHELL=/bin/bash
PATH = "/usr/bin:/bin"
'GREETING'='hello world '
CRON_TZ=Europe/Berlin
MAILTO=ops@example.org
0 3 * * * after`)
  expect(before?.plan).toMatchObject({ job: { timezone: 'UTC', payload: { command: 'before' } } })
  expect(after).toMatchObject({
    place: 'line 10',
    plan: {
      job: {
        timezone: 'Europe/Berlin',
        payload: { command: 'after', shell: '/bin/bash', env: { PATH: '/usr/bin:/bin', GREETING: 'hello world ' } },
      },
    },
  })
})

test.each([
  ['0 0 * * * mail -s "100\\% done" ada%Dear Ada,%%bye', 'mail -s "100% done" ada', 'Dear Ada,\n\nbye\n'],
  ['0 0 * * * date +\\%F', 'date +%F', undefined],
  ['0 0 * * * cat%', 'cat', '\n'],
])('%s: the first bare % ends the command', (line, command, stdin) => {
  const { payload } = one(line).job as { payload: Record<string, unknown> }
  expect([payload.command, payload.stdin]).toEqual([command, stdin])
})

test('a crontab of the system has a column for the user', () => {
  const { name, job, differences } = one('17 * * * * root run-parts /etc/cron.hourly', { format: 'system' })
  expect(job.payload).toEqual({ command: 'run-parts /etc/cron.hourly', user: 'root' })
  expect(name).toMatch(/^crontab\/root-run-parts/)
  expect(differences).toContain('the user root stands in the payload: becoming that user is up to the worker')
  expect(one('17 * * * * root run-parts /etc/cron.hourly').differences.join()).toContain('(--system)')
})

test('a job keeps its name when its times change, and two of the same command have two names', () => {
  const [first, second] = read('0 1 * * * backup\n0 13 * * * backup').map(({ plan }) => (plan as JobPlan).name)
  expect(second).toBe(`${first}-2`)
  expect(one('30 4 * * 0 backup').name).toBe(first)
  expect(one('30 4 * * 0 backup --all').name).not.toBe(first)
})

test('what cannot be taken over is told by its line, and the others are taken', () => {
  expect(
    reasonOf('@reboot start-me\n* * * *\n0 0 */2 * 1 odd\n@daily\n0~30 * * * * chance\n@daily fine\nnonsense\n'),
  ).toEqual([
    ['line 1', expect.stringMatching(/^@reboot is no time/)],
    ['line 2', 'it has fewer than five fields, and is no variable (NAME=value) either'],
    ['line 3', expect.stringMatching(/days that match both \*\/2 and 1/)],
    ['line 4', 'it has no command after its times'],
    ['line 5', expect.stringMatching(/has ~.*H picks one that stays/)],
    ['line 6', 'taken'],
    ['line 7', expect.stringMatching(/fewer than five/)],
  ])
  expect(reasonOf('0 0 * * * root', { format: 'system' })).toEqual([
    ['line 1', 'it has no command after the user root'],
  ])
  expect(reasonOf('CRON_TZ=Europe/Berln\n0 0 * * * x')).toEqual([['line 2', expect.stringMatching(/no time zone/)]])
})

test.each([
  ['0 3 * * * x', [/UTC is taken/, /output is not mailed/, /may run for ever/, /less than a minute late/]],
  ['MAILTO=""\nCRON_TZ=UTC\n0 3 * * * x', [/work for the queue crontab: a worker has to run them/]],
  ['MAILTO=ada\n0 3 * * * x', [/^MAILTO is not taken over, output is not mailed/]],
  ['TOKEN=abc\nTZ=Asia/Tokyo\n0 3 * * * x', [/^TOKEN, TZ go along in the payload/, /^TZ is the zone of the command/]],
])('%s: what differs is said in one sentence each', (text, expected) => {
  const { differences } = one(text)
  for (const sentence of expected) expect(differences).toContainEqual(expect.stringMatching(sentence))
  expect(differences.every((difference) => !difference.includes('\n'))).toBe(true)
})

test('nothing is said of what does not differ', () => {
  const differences = one('MAILTO=""\nCRON_TZ=Europe/Berlin\n0 3 * * * x').differences.join('\n')
  expect(differences).not.toMatch(/mailed|UTC|clocks|payload/)
})

test.each([
  ['0 3 * * *', null],
  ['0 1,2,3 * * *', null],
  ['*/15 * * * *', null],
  ['* 2 * * *', /runs a repeated one twice; Belfry runs times of a given hour once/],
  ['0 1-5 * * *', /Belfry follows the clock where the hours are a range/],
])('%s: the nights when clocks change are mentioned only where they differ', (cron, expected) => {
  const about = one(`${cron} x`, { timezone: 'Europe/Berlin' }).differences.filter((text) => text.includes('clocks'))
  expect(about).toEqual(expected === null ? [] : [expect.stringMatching(expected)])
  expect(one(`${cron} x`).differences.filter((text) => text.includes('clocks'))).toEqual([])
})
