import { expect, test } from 'vitest'
import type { Plan } from './entry.ts'
import { readK8sCronJobs } from './k8s-cronjob.ts'

type JobPlan = Extract<Plan, { kind: 'job' }>

const read = (text: string, timezone?: string) =>
  readK8sCronJobs(text, { queue: 'kubernetes', ...(timezone === undefined ? {} : { timezone }) })

function one(text: string, timezone?: string): JobPlan {
  const [{ plan } = { plan: null }] = read(text, timezone).entries
  if (plan?.kind !== 'job') throw new Error(`it is not taken over: ${plan?.reason}`)
  return plan
}

/** A small CronJob with some lines more in its spec, in that of its Job, and in its container. */
const cronJob = (spec = '', { job = '', container = '', name = 'report', schedule = '"0 9 * * 1-5"' } = {}) => `
apiVersion: batch/v1
kind: CronJob
metadata: { name: ${name} }
spec:
  schedule: ${schedule}
  ${spec}
  jobTemplate:
    spec:
      ${job}
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: example.org/report:3
              ${container}
`

test('a CronJob becomes a job with its policies', () => {
  const text = `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
  namespace: shop
  labels: { app: shop, tier: "2" }
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Replace
  suspend: true
  startingDeadlineSeconds: 200
  successfulJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      ttlSecondsAfterFinished: 100
      template:
        spec:
          serviceAccountName: reporter
          restartPolicy: OnFailure
          containers:
            - name: main
              image: example.org/nightly:1.2
              command: [nightly]
              args: ["--all", "2"]
              workingDir: /srv
              env:
                - { name: MODE, value: fast }
                - { name: PASSWORD, valueFrom: { secretKeyRef: { name: db, key: password } } }
              envFrom:
                - secretRef: { name: tokens }
              resources: { limits: { memory: 1Gi } }
`
  const { name, isSuspended, job, differences } = one(text)
  expect({ name, isSuspended }).toEqual({ name: 'shop/nightly', isSuspended: true })
  expect(job).toEqual({
    cron: '30 2 * * *',
    timezone: 'Europe/Berlin',
    queue: 'kubernetes',
    payload: {
      image: 'example.org/nightly:1.2',
      command: ['nightly'],
      args: ['--all', '2'],
      workingDir: '/srv',
      env: { MODE: 'fast' },
    },
    overlap: 'cancel_running',
    catchUp: { policy: 'latest', window: 'PT200S' },
    retry: {
      maxAttempts: 3,
      maxAge: 'PT600S',
      backoff: { type: 'exponential', initial: 'PT10S', factor: 2, max: 'PT6M', jitter: 0 },
    },
    timeout: 'PT600S',
    labels: { app: 'shop', tier: '2', 'imported-from': 'k8s-cronjob' },
  })
  expect(differences).toEqual([
    'containers become work for the queue kubernetes: a worker has to run them',
    expect.stringMatching(/^concurrencyPolicy Replace kills; cancel_running asks/),
    'runs missed for more than startingDeadlineSeconds (200) are recorded as skipped',
    expect.stringMatching(/^activeDeadlineSeconds \(600\) is for all tries together/),
    expect.stringMatching(/^history is kept by time/),
    'ttlSecondsAfterFinished of the Job is not taken over: a run is one piece of work',
    'the variable PASSWORD comes from the key password of the secret db: its value is not copied',
    'the variables of the secret tokens are not copied',
    expect.stringMatching(/^serviceAccountName of the pod is not taken over/),
    expect.stringMatching(/^resources of the container is not taken over/),
    expect.stringMatching(/^when clocks change, Kubernetes leaves out/),
  ])
})

test.each([
  ['"CRON_TZ=Asia/Tokyo 0 9 * * *"', { cron: '0 9 * * *', timezone: 'Asia/Tokyo' }],
  ['"TZ=America/New_York @daily"', { cron: '@daily', timezone: 'America/New_York' }],
  ['"@every 1h30m"', { every: '1h30m', timezone: 'UTC' }],
  ['"0 9 * * MON"', { cron: '0 9 * * MON', timezone: 'UTC' }],
])('the schedule %s may hold a zone of its own', (schedule, expected) => {
  expect(one(cronJob('', { schedule })).job).toMatchObject(expected)
})

test('the zone of the flag is for those that name none', () => {
  expect(one(cronJob(), 'Asia/Tokyo').job).toMatchObject({ timezone: 'Asia/Tokyo' })
  expect(one(cronJob('timeZone: Europe/Paris'), 'Asia/Tokyo').job).toMatchObject({ timezone: 'Europe/Paris' })
  expect(one(cronJob()).differences).toContainEqual(expect.stringMatching(/UTC is taken \(--timezone/))
})

test.each([
  ['concurrencyPolicy: Allow', 'allow'],
  ['concurrencyPolicy: Forbid', 'skip'],
  ['concurrencyPolicy: Replace', 'cancel_running'],
  ['', 'allow'],
])('"%s" becomes overlap %s', (spec, overlap) => {
  expect(one(cronJob(spec)).job).toMatchObject({ overlap })
})

test('what Kubernetes does by default is taken over too', () => {
  expect(one(cronJob()).job).toMatchObject({
    retry: { maxAttempts: 7 },
    catchUp: { policy: 'latest' },
    timeout: 'PT86400S',
  })
  expect(one(cronJob('', { job: 'backoffLimit: 0' })).job).toMatchObject({ retry: { maxAttempts: 1 } })
})

test('documents, lists and JSON are read; other resources are passed over; a bad one stops no other', () => {
  const items = [1, 2].map((n) => ({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: `item-${n}` },
    spec: { schedule: '@hourly', jobTemplate: { spec: { template: { spec: { containers: [{ image: 'x' }] } } } } },
  }))
  const text = [
    cronJob(),
    'kind: Service\nmetadata: { name: web, namespace: shop }',
    'kind: CronJob\n  bad: : indentation\n - what',
    '# nothing here',
    JSON.stringify({ kind: 'List', apiVersion: 'v1', items }),
    cronJob('concurrencyPolicy: Sometimes', { name: 'odd' }),
    'kind: CronJob\napiVersion: batch/v2\nmetadata: { name: new }',
    'kind: CronJob\napiVersion: batch/v1\nmetadata: { name: no-schedule }',
    'just a text',
  ].join('\n---\n')
  const { entries, passedOver } = read(text)
  expect(passedOver).toEqual(['document 2: Service shop/web'])
  expect(
    entries.map(({ place, source, plan }) => [place, source, plan.kind === 'job' ? plan.name : plan.reason]),
  ).toEqual([
    ['document 1', 'CronJob report', 'report'],
    [expect.stringMatching(/^document 3, line \d+$/), '', expect.stringMatching(/^it is no YAML: /)],
    ['document 5, item 1', 'CronJob item-1', 'item-1'],
    ['document 5, item 2', 'CronJob item-2', 'item-2'],
    ['document 6', 'CronJob odd', expect.stringMatching(/"Sometimes", but must be Allow, Forbid or Replace/)],
    ['document 7', 'CronJob new', 'its apiVersion is batch/v2, and only batch/v1 is known'],
    ['document 8', 'CronJob no-schedule', 'it has no spec.schedule'],
    ['document 9', '', 'it is no resource: there is no apiVersion and no kind'],
  ])
})

test('a time that follows the clock is treated alike when clocks change', () => {
  const differences = (schedule: string) =>
    one(cronJob('timeZone: Europe/Berlin', { schedule })).differences.filter((text) => text.includes('clocks'))
  expect(differences('"*/30 * * * *"')).toEqual([])
  expect(differences('"30 2 * * *"')).toHaveLength(1)
})

test('YAML is read as Kubernetes reads it: yes is true, and a date is a text', () => {
  expect(one(cronJob('suspend: yes'))).toMatchObject({ isSuspended: true })
  const container = 'env: [{ name: SINCE, value: 2026-01-31 }, { name: EMPTY }]'
  expect(one(cronJob('', { container })).job).toMatchObject({ payload: { env: { SINCE: '2026-01-31', EMPTY: '' } } })
})

test.each(['['.repeat(100_000), '{"a":'.repeat(5_000), '- '.repeat(100_000)])(
  'a file that is nested beyond reason is refused before it is read (%#)',
  (text) => {
    expect(() => readK8sCronJobs(text, { queue: 'q' })).toThrow('it is nested more than 500 levels deep')
  },
)
