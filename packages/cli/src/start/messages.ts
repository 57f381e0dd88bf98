/** What the first process and the others tell each other. */
export type FromProcess =
  | { belfry: 'ready' }
  /** It cannot be started at all: nothing that another try would cure. */
  | { belfry: 'failed'; message: string; exitCode: number }
  /** It has served, and has stopped by itself: another try would do the same. */
  | { belfry: 'ended'; message: string; exitCode: number }

export type ToProcess = { belfry: 'stop' }

export function isFromProcess(message: unknown): message is FromProcess {
  return isOurs(message) && ['ready', 'failed', 'ended'].some((word) => word === message.belfry)
}

export function isToProcess(message: unknown): message is ToProcess {
  return isOurs(message) && message.belfry === 'stop'
}

const isOurs = (message: unknown): message is { belfry: unknown } =>
  typeof message === 'object' && message !== null && 'belfry' in message
