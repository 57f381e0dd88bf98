/**
 * Runs `step` again and again with `pauseMs` between two of them, without keeping the process alive: for watching
 * something that belongs to nobody's work. A step that throws is the step's own affair to report.
 */
export function inBackground(pauseMs: number, step: () => Promise<void>): { cancel(): void } {
  let cancelled = false
  let handle: NodeJS.Timeout | undefined
  const plan = () => {
    if (cancelled) return
    handle = setTimeout(() => void step().finally(plan), pauseMs)
    handle.unref()
  }
  plan()
  return {
    cancel: () => {
      cancelled = true
      clearTimeout(handle)
    },
  }
}
