/** As much of a process as is asked of one; browsers have none. */
interface ProcessLike {
  pid?: number
  on?(signal: string, listener: () => void): void
  off?(signal: string, listener: () => void): void
}

const SIGNALS = ['SIGTERM', 'SIGINT']

const ownProcess = (): ProcessLike => (globalThis as { process?: ProcessLike }).process ?? {}

/**
 * Calls `stop` on the first SIGTERM or SIGINT. A second one does what it does without us: whoever is in a hurry gets through.
 * Answers how to stop listening.
 */
export function onceOnSignal(stop: () => void): () => void {
  const { on, off } = ownProcess()
  if (!on || !off) return () => {}
  const process = ownProcess()
  const forget = () => {
    for (const signal of SIGNALS) off.call(process, signal, listener)
  }
  const listener = () => {
    forget()
    stop()
  }
  for (const signal of SIGNALS) on.call(process, signal, listener)
  return forget
}

export const processId = (): number => ownProcess().pid ?? 0
