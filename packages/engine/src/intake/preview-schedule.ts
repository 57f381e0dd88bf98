import { Complaints, isRecord, join, readInteger } from '../input/read-fields.ts'
import { isJobId } from '../job/ids.ts'
import { nearestName } from '../job/nearest-name.ts'
import type { Clock } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'
import { MAX_DURATION_MS } from '../schedule/duration.ts'
import { shown } from '../schedule/not-understood.ts'
import { type Description, describeRecurring, describeWhen } from './describe-when.ts'
import type { JobInput } from './job-input.ts'
import { neverFires } from './never-fires.ts'
import { previewTimes } from './preview-times.ts'
import { type CalendarReader, calendarsOf, hasHash, NO_JOB, resolveFor } from './resolve-when.ts'
import { readInstant } from './understand-bounds.ts'
import { understandWhen, WHEN_FIELDS } from './understand-when.ts'

/** What says when a job runs, and how much of that is wanted. */
export interface PreviewInput extends Pick<JobInput, (typeof WHEN_FIELDS)[number]> {
  /** Times after this one, as if the job were created then; now, unless given. */
  from?: Date | string
  /** 1–1,000, default 5. */
  count?: number
  /** Whose `H` it is. */
  jobId?: string
}

export interface Preview extends Description {
  /** What the times do not say by themselves. */
  note?: string
}

const FIELDS: readonly string[] = [...WHEN_FIELDS, 'from', 'count', 'jobId']
const USUAL_COUNT = 5
const MAX_COUNT = 1_000
const MADE_UP = 'H depends on the job’s id: these are the times of a made-up one; jobId says of which'

/** When a job with these fields would run. Throws all that is wrong with them, as creating it would. */
export async function previewSchedule(
  deps: { clock: Clock; calendars: CalendarReader },
  tenantId: number,
  input: unknown,
): Promise<Preview> {
  const complaints = new Complaints()
  const fields = readFields(complaints, input)
  const { from, count, jobId } = fields
  const now = deps.clock.now()
  const asked = from === undefined ? now : (readInstant(complaints, 'from', from, now) ?? now)
  // What begins now is shown; what begins at `from` is not after it.
  const after = from === undefined ? now - 1 : asked
  const most =
    count === undefined ? USUAL_COUNT : (readInteger(complaints, 'count', count, 1, MAX_COUNT) ?? USUAL_COUNT)
  if (jobId !== undefined && !(typeof jobId === 'string' && isJobId(jobId))) {
    complaints.add('jobId', `must be a job's id, as create answers it, not ${shown(jobId)}`)
  }
  const { when } = understandWhen(complaints, fields, { now: asked })
  if (complaints.list.length > 0) throw complaints.error('invalid_job')
  if (when.kind !== 'recurring') return describeWhen(when, null, { after })
  const calendars = await deps.calendars.read(tenantId, calendarsOf(when))
  const spec = resolveFor(when.schedule, {
    jobId: (jobId as string | undefined) ?? NO_JOB,
    calendars,
    from: after + 1,
  })
  const { times, note } = await previewTimes(
    deps.clock,
    { spec, schedule: compileSchedule(spec) },
    { after, until: asked + MAX_DURATION_MS, count: Math.min(most, when.maxRuns ?? most) },
  )
  if (times.length === 0) throw neverFires(spec, after + 1)
  const madeUp = jobId === undefined && hasHash(when.schedule) ? MADE_UP : null
  const notes = [madeUp, note].filter((one) => one !== null)
  const preview = describeRecurring(when.schedule, when.maxRuns, times)
  return notes.length === 0 ? preview : { ...preview, note: notes.join('; ') }
}

function readFields(complaints: Complaints, input: unknown): Record<string, unknown> {
  if (!isRecord(input)) {
    complaints.add('', `must be an object such as { cron: "0 9 * * 1-5" }, not ${shown(input)}`)
    throw complaints.error('invalid_job')
  }
  for (const name of Object.keys(input)) {
    if (FIELDS.includes(name) || input[name] === undefined) continue
    complaints.add(join('', name), 'is not a field of a preview', nearestName(name, FIELDS))
    if (complaints.isFull) break
  }
  return input
}
