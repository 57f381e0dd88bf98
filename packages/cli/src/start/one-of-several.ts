import cluster from 'node:cluster'
import { type Logger, SystemClock } from '@belfry/engine'
import { describeFailure } from '../failure.ts'
import { DRAIN_MS } from './engine-options.ts'
import { type FromProcess, isToProcess } from './messages.ts'
import { type Running, startNode } from './node.ts'
import type { StartOptions } from './start-options.ts'

/** Nobody is there any more who would end a process that cannot drain. */
const ALONE_MS = DRAIN_MS + 8_000

/** A database that is away for longer is told to whoever asks. */
const READY_FIRST_MS = 5_000

/** A node among several behind one port. It drains when the first process says so, or is gone. */
export async function runOneOfSeveral(options: StartOptions, adminKey: string, logger: Logger): Promise<void> {
  let node: Running | null = null
  let stopping = false
  const stop = (why: string) => {
    if (stopping) return
    stopping = true
    logger.info('stopping', { why })
    // What has not started yet, perhaps because it waits for its database, has nothing to drain.
    if (node === null) process.exit(0)
    node.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.on('message', (message: unknown) => {
    if (isToProcess(message)) stop('told to')
  })
  // A terminal sends Ctrl-C to every process; the first one decides what it means.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => (stopping ? process.exit(130) : stop('SIGTERM')))
  cluster.worker?.on('disconnect', () => {
    // Otherwise the cluster module ends the process at once, with its leases held.
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
    new SystemClock().timer(ALONE_MS, () => process.exit(1))
    stop('the first process is gone')
  })

  try {
    node = await startNode(options, adminKey, logger, READY_FIRST_MS)
    tell({ belfry: 'ready' })
  } catch (error) {
    return giveUp('failed', error)
  }
  const reason = await node.ended
  if (reason === null || stopping) return
  stopping = true
  await node.stop().catch(() => {})
  giveUp('ended', reason)
}

function giveUp(belfry: 'failed' | 'ended', error: unknown): void {
  const { message, exitCode } = describeFailure(error)
  tell({ belfry, message, exitCode }, () => process.exit(exitCode))
}

function tell(message: FromProcess, then: () => void = () => {}): void {
  if (process.send && process.connected) process.send(message, undefined, {}, then)
  else then()
}
