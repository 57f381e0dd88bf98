import { expect, test } from 'vitest'
import type { Plan } from './entry.ts'
import { readEventBridge } from './eventbridge.ts'

type JobPlan = Extract<Plan, { kind: 'job' }>

const NOW = Date.parse('2026-11-15T12:00:00Z')
const read = (value: unknown, timezone?: string) =>
  readEventBridge(JSON.stringify(value), {
    queue: 'eventbridge',
    now: NOW,
    ...(timezone === undefined ? {} : { timezone }),
  }).entries

const schedule = (fields: object = {}) => ({
  Name: 'nightly',
  GroupName: 'default',
  ScheduleExpression: 'cron(0 9 ? * 2-6 *)',
  ScheduleExpressionTimezone: 'UTC',
  State: 'ENABLED',
  FlexibleTimeWindow: { Mode: 'OFF' },
  Target: {
    Arn: 'arn:aws:lambda:eu-central-1:123456789012:function:nightly',
    RoleArn: 'arn:aws:iam::123456789012:role/x',
  },
  ...fields,
})

function one(value: unknown, timezone?: string): JobPlan {
  const [{ plan } = { plan: null }] = read(value, timezone)
  if (plan?.kind !== 'job') throw new Error(`it is not taken over: ${plan?.reason}`)
  return plan
}

const cronOf = (expression: string) => one(schedule({ ScheduleExpression: expression })).job.cron
const reasonOf = (fields: object) =>
  read(schedule(fields)).map(({ plan }) => (plan.kind === 'refused' ? plan.reason : 'taken'))[0]

test('a schedule becomes a job with its target, window, bounds and retries', () => {
  const { name, isSuspended, job, differences } = one(
    schedule({
      GroupName: 'billing',
      ScheduleExpressionTimezone: 'America/New_York',
      State: 'DISABLED',
      FlexibleTimeWindow: { Mode: 'FLEXIBLE', MaximumWindowInMinutes: 15 },
      StartDate: '2026-12-01T00:00:00-05:00',
      EndDate: 1_798_761_600,
      KmsKeyArn: 'arn:aws:kms:x',
      Target: {
        Arn: 'arn:aws:sqs:eu-central-1:123456789012:work',
        RoleArn: 'arn:aws:iam::123456789012:role/x',
        Input: '{"at":"<aws.scheduler.scheduled-time>"}',
        RetryPolicy: { MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 3600 },
        DeadLetterConfig: { Arn: 'arn:aws:sqs:x' },
        SqsParameters: { MessageGroupId: 'a' },
      },
    }),
  )
  expect({ name, isSuspended }).toEqual({ name: 'billing/nightly', isSuspended: true })
  expect(job).toEqual({
    cron: '0 9 * * 1-5',
    timezone: 'America/New_York',
    startAt: '2026-12-01T05:00:00.000Z',
    endAt: '2027-01-01T00:00:00.000Z',
    jitter: 'PT15M',
    overlap: 'allow',
    catchUp: { policy: 'none' },
    queue: 'eventbridge',
    payload: {
      target: 'arn:aws:sqs:eu-central-1:123456789012:work',
      input: { at: '<aws.scheduler.scheduled-time>' },
    },
    retry: { maxAttempts: 4, maxAge: 'PT3600S' },
    labels: { 'imported-from': 'eventbridge' },
  })
  expect(differences).toEqual([
    'calls of targets become work for the queue eventbridge: a worker has to run them',
    expect.stringMatching(/^retries follow the backoff of Belfry/),
    expect.stringMatching(/^RoleArn is not taken over/),
    expect.stringMatching(/^DeadLetterConfig is not taken over/),
    expect.stringMatching(/^placeholders such as <aws.scheduler.scheduled-time> stay/),
    'SqsParameters of the target is not taken over',
    expect.stringMatching(/^a time missed/),
    'day-of-week 1 is Sunday there and 0 is here: 2-6 is written as 1-5',
    expect.stringMatching(/^when clocks go forward, EventBridge leaves out/),
    expect.stringMatching(/^FlexibleTimeWindow becomes jitter/),
    'KmsKeyArn is not taken over',
  ])
})

test.each([
  ['cron(0 9 ? * 1 *)', '0 9 * * 0'],
  ['cron(0 9 ? * 7 *)', '0 9 * * 6'],
  ['cron(0 9 ? * SUN,3-5 *)', '0 9 * * SUN,2-4'],
  ['cron(0 9 ? * MON-FRI *)', '0 9 * * MON-FRI'],
  ['cron(0 9 ? * L *)', '0 9 * * 6'],
  ['cron(0 9 ? * 6L *)', '0 9 * * 5L'],
  ['cron(0 9 ? * 3#2 *)', '0 9 * * 2#2'],
  ['cron(0 9 ? * 2/2 *)', '0 9 * * 1-6/2'],
  ['cron(0 9 ? * */2 *)', '0 9 * * 0-6/2'],
  ['cron(0 9 ? * MON#1 *)', '0 9 * * MON#1'],
  ['cron(0/15 8-17 L * ? *)', '0/15 8-17 L * *'],
  ['cron(0 8 3W jan,JUL ? *)', '0 8 3W JAN,JUL *'],
  ['cron(15 10 * * ? *)', '15 10 * * *'],
])('%s is written as %s', (expression, cron) => {
  expect(cronOf(expression)).toBe(cron)
})

test.each([
  ['rate(1 minute)', { every: 'PT1M' }],
  ['rate(5 minutes)', { every: 'PT5M' }],
  ['rate(12 hours)', { every: 'PT12H' }],
  ['rate(7 days)', { every: 'PT168H' }],
  ['at(2026-12-24T18:00:00)', { runAt: '2026-12-24T17:00:00.000Z' }],
])('%s counts in the zone of the schedule', (ScheduleExpression, job) => {
  const plan = one(schedule({ ScheduleExpression, ScheduleExpressionTimezone: 'Europe/Berlin' }))
  expect(plan.job).toMatchObject(job)
})

test('years become bounds in the zone of the schedule', () => {
  const fields = { ScheduleExpression: 'cron(0 9 1 * ? 2027-2028)', ScheduleExpressionTimezone: 'Europe/Berlin' }
  expect(one(schedule(fields)).job).toMatchObject({
    cron: '0 9 1 * *',
    startAt: '2026-12-31T23:00:00.000Z',
    endAt: '2028-12-31T23:00:00.000Z',
  })
})

test.each([
  [{ ScheduleExpression: 'cron(0 9 ? * 2-6)' }, /must have six fields, from minutes to year, and has 5/],
  [{ ScheduleExpression: 'cron(0 9 * * * *)' }, /must have \? for the day/],
  [{ ScheduleExpression: 'cron(0 9 ? * 0 *)' }, /must be 1 \(Sunday\) to 7 \(Saturday\), not 0/],
  [{ ScheduleExpression: 'cron(0 9 1 * ? 2026,2028)' }, /the years 2026,2028 cannot be taken over/],
  [{ ScheduleExpression: 'cron(0 9 1 * ? 2025)' }, /^it ended at 2026-01-01T00:00:00.000Z/],
  [{ ScheduleExpression: 'cron(0 9 ? * * 9999)' }, /^the years 9999 are no years of EventBridge/],
  [{ ScheduleExpression: 'rate(0 minutes)' }, /must look like rate\(5 minutes\)/],
  [{ ScheduleExpression: 'rate(5 weeks)' }, /must look like rate\(5 minutes\)/],
  [{ ScheduleExpression: 'at(2026-11-15T11:59:59)' }, /which is over/],
  [{ ScheduleExpression: 'at(tomorrow)' }, /must look like at\(2026-12-01T09:00:00\)/],
  [{ ScheduleExpression: 'at(2027-02-30T00:00:00)' }, /names a day or time that does not exist/],
  [{ ScheduleExpression: 'at(2027-02-28T25:00:00)' }, /names a day or time that does not exist/],
  [{ ScheduleExpression: 'at(2027-01-01T00:00:00)', State: 'DISABLED' }, /cannot be paused/],
  [{ ScheduleExpression: 'every day' }, /is none of cron\(…\), rate\(…\) and at\(…\)/],
  [{ ScheduleExpression: undefined }, /`aws scheduler get-schedule` shows it/],
  [{ ScheduleExpressionTimezone: 'Mars/Olympus' }, /no time zone/],
  [{ EndDate: '2026-01-01T00:00:00Z' }, /^it ended at/],
  [{ StartDate: 'soon' }, /its StartDate is "soon", which is no instant/],
  [{ Name: undefined }, /it has no Name/],
])('%j is refused with its reason', (fields, reason) => {
  expect(reasonOf(fields)).toMatch(reason)
})

test.each([
  ['at(2027-03-28T02:30:00)', /skip 2027-03-28T02:30:00: it runs right after the gap, at 2027-03-28T03:00:00$/],
  ['at(2027-10-31T02:30:00)', /^2027-10-31T02:30:00 comes twice in Europe\/Berlin: it runs the first time$/],
  ['at(2027-03-28T03:00:00)', null],
  ['at(2027-10-31T03:00:00)', null],
  ['at(2027-10-31T01:59:59)', null],
])('%s: a time that is odd on that clock is said to be', (ScheduleExpression, expected) => {
  const { differences } = one(schedule({ ScheduleExpression, ScheduleExpressionTimezone: 'Europe/Berlin' }))
  const odd = differences.filter((difference) => /clocks|twice/.test(difference))
  expect(odd).toEqual(expected === null ? [] : [expect.stringMatching(expected)])
})

test('what is nested beyond reason is refused, and the others are taken', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const text = `[${deep}, {"Name": "a", "StartDate": ${deep}, "ScheduleExpression": "rate(1 hour)"}, ${JSON.stringify(schedule())}]`
  const { entries } = readEventBridge(text, { queue: 'q', now: NOW })
  expect(entries.map(({ plan }) => plan.kind)).toEqual(['refused', 'refused', 'job'])
  const [entry] = read([schedule({ Target: { Arn: 'a', Input: deep } })])
  expect(entry?.plan).toEqual({ kind: 'refused', reason: 'its payload would be more than 100 levels deep' })
})

test('rules of events go by UTC, and their targets are elsewhere', () => {
  const Rules = [
    { Name: 'hourly', ScheduleExpression: 'rate(1 hour)', State: 'ENABLED', EventBusName: 'default' },
    { Name: 'off', ScheduleExpression: 'cron(0 3 * * ? *)', State: 'DISABLED' },
    { Name: 'on-upload', EventPattern: '{"source":["aws.s3"]}', State: 'ENABLED' },
  ]
  const [hourly, off, upload] = read({ Rules }, 'Europe/Berlin')
  expect(hourly?.plan).toMatchObject({ name: 'hourly', job: { every: 'PT1H', payload: { rule: 'hourly' } } })
  expect(JSON.stringify(hourly)).toContain('list-targets-by-rule')
  expect(off?.plan).toMatchObject({ isSuspended: true, job: { cron: '0 3 * * *', timezone: 'UTC' } })
  expect(upload?.plan).toEqual({ kind: 'refused', reason: 'it is a rule for events, not for times' })
})

test('one, a list, and what lists are wrapped in are all read', () => {
  for (const value of [schedule(), [schedule()], { Schedules: [schedule()] }]) expect(read(value)).toHaveLength(1)
  expect(() => readEventBridge('{', { queue: 'q', now: NOW })).toThrow(/^it is not JSON/)
})
