import type { Description } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { timeText } from '../../terminal/time-text.ts'
import { JOB_FLAGS, readJob } from './read-job.ts'

interface Created extends Partial<Description> {
  jobId: string
  status?: string
  deduplicated?: boolean
  nextRunAt?: string | null
}

export const createJob: Command = {
  name: 'jobs create',
  summary: 'create a job',
  operands: [],
  flags: { ...JOB_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  details: `  belfry jobs create --name hello --every 10s --url https://example.com/ --method GET
  belfry jobs create --queue emails --payload '{"to":"ada@example.org"}' --delay 2h
  belfry jobs create --queue reports --when 'every weekday at 9am' --timezone Europe/Berlin --exclude 2026-12-25
  belfry jobs create --file job.json`,
  async run({ flags, terminal, api }) {
    const job = await readJob(flags, () => terminal.input())
    const created = await (await api()).post<Created>('/v1/jobs', job)
    terminal.details(created, [
      ['job', created.jobId],
      ['status', created.deduplicated ? `${created.status ?? 'there'} (it was there already)` : created.status],
      ['understood as', created.understoodAs],
      ['next run', timeText(created.nextRunAt)],
    ])
  },
}
