import type { Command } from './command/command.ts'
import { cancelBackfill } from './commands/backfill/cancel.ts'
import { createBackfill } from './commands/backfill/create.ts'
import { getBackfill } from './commands/backfill/get.ts'
import { listBackfills } from './commands/backfill/list.ts'
import { getBatch } from './commands/batches/get.ts'
import { deleteCalendar } from './commands/calendars/delete.ts'
import { getCalendar } from './commands/calendars/get.ts'
import { listCalendars } from './commands/calendars/list.ts'
import { putCalendar } from './commands/calendars/put.ts'
import { listDeadLetters } from './commands/dlq/list.ts'
import { redrive } from './commands/dlq/redrive.ts'
import { explain } from './commands/explain.ts'
import { forecast } from './commands/forecast.ts'
import { importCrontab } from './commands/import/crontab.ts'
import { importEventBridge } from './commands/import/eventbridge.ts'
import { importK8sCronJob } from './commands/import/k8s-cronjob.ts'
import { cancelJob } from './commands/jobs/cancel.ts'
import { createJob } from './commands/jobs/create.ts'
import { getJob } from './commands/jobs/get.ts'
import { listJobs } from './commands/jobs/list.ts'
import { pauseJob } from './commands/jobs/pause.ts'
import { resumeJob } from './commands/jobs/resume.ts'
import { triggerJob } from './commands/jobs/trigger.ts'
import { createKey } from './commands/keys/create.ts'
import { listKeys } from './commands/keys/list.ts'
import { revokeKey } from './commands/keys/revoke.ts'
import { rotateKey } from './commands/keys/rotate.ts'
import { migrate } from './commands/migrate.ts'
import { freeOrigin } from './commands/origins/free.ts'
import { limitOrigin } from './commands/origins/limit.ts'
import { listOrigins } from './commands/origins/list.ts'
import { listPauses } from './commands/pauses/list.ts'
import { pause } from './commands/pauses/pause.ts'
import { resume } from './commands/pauses/resume.ts'
import { preview } from './commands/preview.ts'
import { getQueue } from './commands/queues/get.ts'
import { limitQueue } from './commands/queues/limit.ts'
import { listQueues } from './commands/queues/list.ts'
import { cancelRun } from './commands/runs/cancel.ts'
import { getRun } from './commands/runs/get.ts'
import { listRuns } from './commands/runs/list.ts'
import { retryRun } from './commands/runs/retry.ts'
import { start } from './commands/start.ts'
import { createTenant } from './commands/tenants/create.ts'
import { deleteTenant } from './commands/tenants/delete.ts'
import { getTenant } from './commands/tenants/get.ts'
import { listTenants } from './commands/tenants/list.ts'
import { updateTenant } from './commands/tenants/update.ts'
import { drainWorker } from './commands/workers/drain.ts'
import { listWorkers } from './commands/workers/list.ts'

/** Everything that `belfry` can do, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  start,
  migrate,
  createJob,
  listJobs,
  getJob,
  cancelJob,
  pauseJob,
  resumeJob,
  triggerJob,
  explain,
  forecast,
  preview,
  importCrontab,
  importK8sCronJob,
  importEventBridge,
  createBackfill,
  listBackfills,
  getBackfill,
  getBatch,
  cancelBackfill,
  listRuns,
  getRun,
  retryRun,
  cancelRun,
  listDeadLetters,
  redrive,
  listQueues,
  getQueue,
  limitQueue,
  pause,
  resume,
  listPauses,
  listOrigins,
  limitOrigin,
  freeOrigin,
  listCalendars,
  putCalendar,
  getCalendar,
  deleteCalendar,
  listWorkers,
  drainWorker,
  createKey,
  listKeys,
  revokeKey,
  rotateKey,
  createTenant,
  listTenants,
  getTenant,
  updateTenant,
  deleteTenant,
]
