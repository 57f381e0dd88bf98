import type { Instant } from '../runtime/clock.ts'

/** A name that is to be looked at. */
export interface Entry<Name> {
  readonly id: string
  name: Name
  at: Instant
  /** How often it was looked at in vain. */
  tries: number
  /** Where it stands in the heap. */
  place: number
}

interface PendingTerms<Name> {
  /** No more are remembered. */
  max: number
  idOf(name: Name): string
  /** What a name says that is told a second time before it was looked at. */
  join(known: Name, told: Name): Name
}

/**
 * Names that are to be looked at, each once, and not before its time. A heap: taking those that are due costs nothing for the others. Each entry
 * knows its place, so a name that is to come earlier moves up.
 */
export class Pending<Name> {
  readonly #terms: PendingTerms<Name>
  readonly #heap: Entry<Name>[] = []
  readonly #byId = new Map<string, Entry<Name>>()

  constructor(terms: PendingTerms<Name>) {
    this.#terms = terms
  }

  /** When the first one is to be looked at. */
  get firstAt(): Instant {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  /** A name that is there already comes at the earlier of both times. */
  put(name: Name, at: Instant, tries = 0): void {
    const id = this.#terms.idOf(name)
    const known = this.#byId.get(id)
    if (known !== undefined) {
      known.name = this.#terms.join(known.name, name)
      known.tries = Math.min(known.tries, tries)
      known.at = Math.min(known.at, at)
      this.#rise(known)
    } else if (this.#heap.length < this.#terms.max) {
      const entry = { id, name, at, tries, place: this.#heap.length }
      this.#byId.set(id, entry)
      this.#heap.push(entry)
      this.#rise(entry)
    }
  }

  /** Takes names whose time has come, those that have waited longest first. */
  take(now: Instant, limit: number): Entry<Name>[] {
    const due: Entry<Name>[] = []
    while (due.length < limit && this.firstAt <= now) due.push(this.#takeFirst())
    return due
  }

  /** Puts all that another list holds. */
  putAll(others: Pending<Name>): void {
    for (const { name, at, tries } of others.#heap) this.put(name, at, tries)
  }

  #takeFirst(): Entry<Name> {
    const [first] = this.#heap as [Entry<Name>]
    const last = this.#heap.pop() as Entry<Name>
    this.#byId.delete(first.id)
    if (last !== first) {
      this.#set(last, 0)
      this.#sink(last)
    }
    return first
  }

  #rise(entry: Entry<Name>): void {
    while (entry.place > 0) {
      const above = this.#heap[(entry.place - 1) >> 1] as Entry<Name>
      if (above.at <= entry.at) return
      this.#swap(above, entry)
    }
  }

  #sink(entry: Entry<Name>): void {
    for (;;) {
      const left = this.#heap[2 * entry.place + 1]
      const right = this.#heap[2 * entry.place + 2]
      if (left === undefined) return
      const below = right !== undefined && right.at < left.at ? right : left
      if (entry.at <= below.at) return
      this.#swap(entry, below)
    }
  }

  #swap(above: Entry<Name>, below: Entry<Name>): void {
    const { place } = above
    this.#set(above, below.place)
    this.#set(below, place)
  }

  #set(entry: Entry<Name>, place: number): void {
    entry.place = place
    this.#heap[place] = entry
  }
}
