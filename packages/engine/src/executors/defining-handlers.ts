import type { RunDefinitions } from '../attempts/run-definitions.ts'
import type { Lease } from '../leases/lease.ts'
import { pause } from '../runtime/pause.ts'
import { Handlers, type HandlersDeps } from './handlers/handlers.ts'

const RETRY_PAUSE_MS = 200

/** Handlers of runs that may have been triggered with a payload of their own. */
export class DefiningHandlers extends Handlers {
  readonly #deps: HandlersDeps & { definitions: RunDefinitions }

  constructor(deps: HandlersDeps & { definitions: RunDefinitions }) {
    super(deps)
    this.#deps = deps
  }

  override async deliver(leases: Lease[]): Promise<void> {
    const unknown = leases.filter(({ definition }) => definition === null)
    if (unknown.length > 0) await this.#define(unknown)
    await super.deliver(leases)
  }

  /** Tried until it is known: without its definition a run would be taken for one whose job is gone. */
  async #define(leases: Lease[]): Promise<void> {
    const { definitions, stopping, logger } = this.#deps
    while (!stopping.aborted) {
      try {
        return await definitions.define(leases)
      } catch (error) {
        logger.debug('definitions cannot be read yet', { error })
        await pause(RETRY_PAUSE_MS)
      }
    }
  }
}
