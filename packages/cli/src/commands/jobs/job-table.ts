import type { Description, Job } from '../../api/shapes.ts'
import type { Field } from '../../terminal/details.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

export const JOB_COLUMNS: readonly Column<Job>[] = [
  { title: 'JOB', of: ({ jobId }) => jobId },
  { title: 'NAME', of: ({ name }) => name ?? '', atLeast: 8 },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'NEXT RUN', of: ({ nextRunAt }) => timeText(nextRunAt), spare: 2 },
  { title: 'LAST RUN', of: ({ lastRun }) => lastRun?.status ?? '', spare: 3 },
  { title: 'WHEN', of: scheduleText, atLeast: 10, spare: 4 },
  { title: 'TARGET', of: targetText, atLeast: 12, spare: 5 },
]

export function jobFields(job: Job & Partial<Description>): readonly Field[] {
  const { lastRun } = job
  return [
    ['job', job.jobId],
    ['name', job.name],
    ['status', job.pausedReason ? `${job.status}: ${job.pausedReason}` : job.status],
    ['when', scheduleText(job)],
    ['understood as', job.understoodAs],
    ['target', targetText(job)],
    ['queue', job.queue],
    ['priority', job.priority],
    [
      'labels',
      Object.entries(job.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    ],
    ['next run', timeText(job.nextRunAt)],
    ['last run', lastRun && `${lastRun.status} at ${timeText(lastRun.finishedAt)}  ${lastRun.id}`],
    ['last failure', lastRun?.error && `${lastRun.failureClass ?? ''}: ${lastRun.error}`],
    ['created', timeText(job.createdAt)],
    ['version', job.version],
  ]
}

function scheduleText({ schedule }: Job): string {
  if (!schedule) return 'once'
  const zone = schedule.timezone && schedule.timezone !== 'UTC' ? ` ${schedule.timezone}` : ''
  if (schedule.when) return `${schedule.when}${zone}`
  if (schedule.cron) return `${[schedule.cron].flat().join(' | ')}${zone}`
  if (schedule.every) return `every ${schedule.every}${zone}`
  return schedule.runAt ? `at ${timeText(schedule.runAt)}` : 'once'
}

function targetText({ http, queue }: Job): string {
  return http ? `${http.method ?? 'POST'} ${http.url}` : `queue ${queue ?? 'default'}`
}
