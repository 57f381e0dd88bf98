import type { Instant } from '../runtime/clock.ts'

/** With slots: its runs have keys, and whoever counts leases looks at it. Shared: they are of several holders. */
export type ReceiptKind = 'plain' | 'with slots' | 'shared'

/** What one statement leased without a row for each: `receipts` says that this holder has these runs, or who else has them. */
export class Receipt {
  readonly holder: string
  readonly kind: ReceiptKind
  /** Runs that still stand in it alone. */
  left = 0
  /** False: its runs have ended, are rows again, or belong to somebody else. */
  isOpen = true
  /** A statement about it may or may not have been carried out: before anything else its runs become rows again. */
  isInDoubt = false

  constructor(holder: string, kind: ReceiptKind = 'plain') {
    this.holder = holder
    this.kind = kind
  }

  /** Its claim is over. If it lists nothing, or nobody knows what, nothing will be ended from it. */
  closeIfEmpty(): void {
    if (this.left === 0) this.isOpen = false
  }
}

/** A run that stands in a receipt: what a row of its own, or its history, will need. */
export interface Packed {
  receipt: Receipt
  dueAt: Instant
  cause: number
  priority: number
  /** Other jobs wait for it, and are told with its end. */
  isAwaited: boolean
  /** While it is being made a row. */
  lifting: Promise<void> | null
  /** Its end is on the way: nobody makes it a row any more. */
  isEnding: boolean
}

export function packedIn(
  receipt: Receipt,
  { dueAt, cause, priority, isAwaited }: Pick<Packed, 'dueAt' | 'cause' | 'priority' | 'isAwaited'>,
): Packed {
  receipt.left++
  return { receipt, dueAt, cause, priority, isAwaited, lifting: null, isEnding: false }
}
