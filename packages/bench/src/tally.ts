/** Counts what handlers have begun, and says when the last one has. The cheapest handler there is: all subjects share it. */
export interface Tally {
  count(): void
  readonly counted: number
  /** When the first one was counted, on the monotonic clock. */
  readonly firstAt: number
  /** Settles when the expected number is reached, fails when that takes longer than the deadline. */
  readonly all: Promise<void>
}

export function tallyUntil(expected: number, deadlineMs: number): Tally {
  let counted = 0
  let firstAt = 0
  let settle: () => void = () => {}
  const all = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`only ${counted} of ${expected} were started within ${deadlineMs} ms`)),
      deadlineMs,
    )
    settle = () => {
      clearTimeout(timer)
      resolve()
    }
  })
  // Whoever loads the work first awaits it only later; an early failure must not end the process meanwhile.
  all.catch(() => {})
  return {
    count() {
      if (counted === 0) firstAt = performance.now()
      if (++counted === expected) settle()
    },
    get counted() {
      return counted
    },
    get firstAt() {
      return firstAt
    },
    all,
  }
}
