import type { Backfill } from '../../api/shapes.ts'
import type { Field } from '../../terminal/details.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

export const BACKFILL_COLUMNS: readonly Column<Backfill>[] = [
  { title: 'BACKFILL', of: ({ backfillId }) => backfillId },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'DONE', of: doneText },
  { title: 'FAILED', of: ({ counts }) => String(counts.failed), spare: 3 },
  { title: 'FROM', of: ({ from }) => timeText(from), spare: 1 },
  { title: 'TO', of: ({ to }) => timeText(to), spare: 1 },
  { title: 'CREATED', of: ({ createdAt }) => timeText(createdAt), spare: 4 },
]

export function backfillFields(backfill: Backfill): readonly Field[] {
  const { counts } = backfill
  return [
    ['backfill', backfill.backfillId],
    ['job', backfill.jobId],
    ['status', backfill.status],
    ['from', timeText(backfill.from)],
    ['to', timeText(backfill.to)],
    ['position', timeText(backfill.position)],
    ['at a time', backfill.concurrency],
    ['done', doneText(backfill)],
    ['left out', counts.leftOut],
    ['running', counts.running],
    ['succeeded', counts.succeeded],
    ['failed', counts.failed],
    ['canceled', counts.canceled],
    ['by', backfill.createdBy],
    ['created', timeText(backfill.createdAt)],
    ['ended', timeText(backfill.endedAt)],
  ]
}

function doneText({ counts }: Backfill): string {
  return `${counts.created + counts.leftOut} of ${counts.total}`
}
