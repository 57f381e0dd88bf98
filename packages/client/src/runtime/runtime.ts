/** Where the client's time and chance come from; tests bring their own. */
export interface Runtime {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `wake` once, `ms` from now. */
  timer(ms: number, wake: () => void): { cancel(): void }
  /** At least 0, less than 1. */
  chance(): number
  /** A text that nobody else has. */
  uniqueId(): string
}

export const systemRuntime: Runtime = {
  now: () => Date.now(),
  timer: (ms, wake) => {
    const handle = setTimeout(wake, ms)
    return { cancel: () => clearTimeout(handle) }
  },
  chance: () => Math.random(),
  uniqueId: () => crypto.randomUUID?.() ?? randomHex(16),
}

/** Browsers offer `randomUUID` on secure pages only; this they offer everywhere. */
function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes))
  return Array.from(values, (value) => value.toString(16).padStart(2, '0')).join('')
}

/** Ends after `ms`, or throws the signal's reason as soon as it is aborted. */
export function pause(runtime: Runtime, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    const timer = runtime.timer(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
