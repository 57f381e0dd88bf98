import type { Attempt, Run, RunSummary } from '../../api/shapes.ts'
import type { Field } from '../../terminal/details.ts'
import type { Column } from '../../terminal/table.ts'
import { durationText, timeText } from '../../terminal/time-text.ts'

export const RUN_COLUMNS: readonly Column<RunSummary>[] = [
  { title: 'RUN', of: ({ id }) => id },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'FOR', of: ({ nominalAt }) => timeText(nominalAt), spare: 2 },
  { title: 'ATTEMPT', of: ({ attempt }) => String(attempt), spare: 3 },
  { title: 'FINISHED', of: ({ finishedAt }) => timeText(finishedAt), spare: 5 },
  { title: 'QUEUE', of: ({ queue }) => queue ?? '', spare: 6 },
  { title: 'FAILURE', of: failureText, atLeast: 12, spare: 4 },
]

export const ATTEMPT_COLUMNS: readonly Column<Attempt>[] = [
  { title: 'ATTEMPT', of: ({ number }) => String(number) },
  { title: 'STATUS', of: ({ status, counted }) => (counted ? status : `${status} (not counted)`) },
  { title: 'STARTED', of: ({ startedAt }) => timeText(startedAt) },
  { title: 'TOOK', of: ({ durationMs }) => durationText(durationMs) },
  { title: 'CODE', of: ({ statusCode }) => (statusCode ? String(statusCode) : '') },
  { title: 'FAILURE', of: failureText, atLeast: 12 },
  { title: 'ANSWER', of: ({ response }) => response?.body ?? '', atLeast: 12, spare: 2 },
]

export function runFields(run: Run): readonly Field[] {
  return [
    ['run', run.id],
    ['job', run.jobId],
    ['status', run.status],
    ['for', timeText(run.nominalAt)],
    ['due', timeText(run.dueAt)],
    ['finished', timeText(run.finishedAt)],
    ['queue', run.queue],
    ['cause', run.cause],
    ['failures', run.failures],
    ['failure', failureText(run)],
    ['result', run.result === null || run.result === undefined ? null : JSON.stringify(run.result)],
  ]
}

function failureText({ failureClass, error }: { failureClass?: string | null; error?: string | null }): string {
  return [failureClass, error].filter(Boolean).join(': ')
}
