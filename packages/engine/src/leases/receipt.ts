import type { Instant } from '../runtime/clock.ts'

/** With slots: its runs have keys, so counting the leases of a key looks at it. */
export type ReceiptKind = 'plain' | 'with slots'

/** What one statement leased without a row for each: `receipts` says that this holder has these runs. */
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
