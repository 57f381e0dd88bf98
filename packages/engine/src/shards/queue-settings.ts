/** What somebody has set for a queue, where it says when too much waits, or how recurring jobs are spread. */
export interface QueueSettings {
  queueId: number
  maxDepth: number | null
  maxAgeMs: number | null
  jitterMs: number | null
}

const NONE: QueueSettings = { queueId: 0, maxDepth: null, maxAgeMs: null, jitterMs: null }

/** The settings of all queues that have some, as this node learnt them with its last pulse. */
export class KnownQueueSettings {
  #byQueue: ReadonlyMap<number, QueueSettings> = new Map()

  learn(settings: readonly QueueSettings[]): void {
    this.#byQueue = new Map(settings.map((one) => [one.queueId, one]))
  }

  get isEmpty(): boolean {
    return this.#byQueue.size === 0
  }

  of(queueId: number): QueueSettings {
    return this.#byQueue.get(queueId) ?? NONE
  }
}

/** Reads what the pulse writes: `id/depth/age/jitter`, each of them empty where nothing is set. */
export function queueSettingsOf(text: string): QueueSettings {
  const [queueId, depth, age, jitter] = text.split('/')
  const numberOf = (part: string | undefined) => (part === undefined || part === '' ? null : Number(part))
  return { queueId: Number(queueId), maxDepth: numberOf(depth), maxAgeMs: numberOf(age), jitterMs: numberOf(jitter) }
}
