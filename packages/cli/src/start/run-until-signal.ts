import type { Logger } from '@belfry/engine'
import type { Running } from './node.ts'

/**
 * Starts, and from the first signal on stops. Ends the process; `failed` is told what went wrong while stopping, and why it
 * stopped by itself.
 */
export async function runUntilSignal(
  start: () => Promise<Running>,
  { logger, failed }: { logger: Logger; failed: (error: unknown) => void },
): Promise<Running> {
  let running: Running | null = null
  let stopping = false
  let ending = false
  const onSignal = (signal: NodeJS.Signals) => {
    // A second signal, or one while nothing has started that would need to be drained, ends everything at once.
    if (running === null) process.exit(0)
    if (stopping) {
      ending = true
      running.end().finally(() => process.exit(130))
      return
    }
    stopping = true
    logger.info('stopping; once more stops at once', { signal })
    running.stop().then(() => ending || process.exit(0), failed)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  running = await start()
  const { ended, stop } = running
  void ended.then((reason) => {
    if (reason === null || stopping) return
    stopping = true
    stop().then(() => ending || failed(reason), failed)
  })
  return running
}
