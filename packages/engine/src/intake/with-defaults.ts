import { isRecord } from '../input/read-fields.ts'
import { queueKindOf } from '../job/definition.ts'
import type { KnownQueueSettings } from '../shards/queue-settings.ts'
import type { Registry } from '../shards/registry.sql.ts'
import { type UnderstandContext, type UnderstoodJob, understandJob } from './understand-job.ts'

interface DefaultsDeps {
  registry: Registry
  queueSettings: KnownQueueSettings
}

/** A recurring job that says nothing of its jitter is spread as its queue says, as if it had said so. */
export async function inputWithDefaults<Input>(
  { registry, queueSettings }: DefaultsDeps,
  input: Input,
  { tenant, queue, definition }: UnderstoodJob,
): Promise<Input> {
  if (queueSettings.isEmpty || definition.schedule === undefined) return input
  if (!isRecord(input) || input.jitter !== undefined) return input
  const queueId = await registry.queueId(await registry.tenantId(tenant), queue, queueKindOf(definition))
  const { jitterMs } = queueSettings.of(queueId)
  return jitterMs === null ? input : { ...input, jitter: `${jitterMs}ms` }
}

/** What makes two requests the same is what was said, whatever its queue says meanwhile. */
export async function withDefaults(
  deps: DefaultsDeps,
  input: unknown,
  understood: UnderstoodJob,
  context: UnderstandContext,
): Promise<UnderstoodJob> {
  const given = await inputWithDefaults(deps, input, understood)
  return given === input ? understood : { ...understandJob(given, context), idempotency: understood.idempotency }
}
