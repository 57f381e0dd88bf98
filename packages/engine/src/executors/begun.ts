import { type Fence, type Lease, lastUntil } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'

/** From so many on, what can no longer be live is looked for among the remembered fences. */
const LOOK_FROM = 10_000

/**
 * The fences that this process has been given to perform: it begins none of them a second time. The database gives a fence
 * once, so a second copy is a mistake of this program, and this is the wall behind it. A fence is forgotten when the end of its
 * attempt is written, and when no lease of it can live any more.
 */
export class Begun {
  readonly #logger: Logger
  readonly #deadlines = new Map<string, Instant>()
  #lookFrom = LOOK_FROM

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Answers the leases that were not given to this process before. */
  onlyNew<SomeLease extends Lease>(leases: readonly SomeLease[], now: Instant): SomeLease[] {
    if (this.#deadlines.size >= this.#lookFrom) this.#forgetDead(now)
    return leases.filter((lease) => {
      const key = fenceKey(lease)
      if (this.#deadlines.has(key)) {
        const { jobId, nominalAt, attempt } = lease
        this.#logger.error('an attempt was to begin a second time in this process', { jobId, nominalAt, attempt })
        return false
      }
      this.#deadlines.set(key, lastUntil(lease))
      return true
    })
  }

  ended(fence: Fence): void {
    this.#deadlines.delete(fenceKey(fence))
  }

  #forgetDead(now: Instant): void {
    for (const [key, deadline] of this.#deadlines) if (deadline <= now) this.#deadlines.delete(key)
    this.#lookFrom = Math.max(LOOK_FROM, 2 * this.#deadlines.size)
  }
}

const fenceKey = ({ jobId, nominalAt, attempt, holder }: Fence): string => `${jobId}.${nominalAt}.${attempt}.${holder}`
