/** Where a member stands in its list; -1 while it is in none. */
export interface Placed {
  place: number
}

/**
 * Members that come and go by the ten thousand a second, in no order. A Set would do, but every so often it moves into a new
 * table, and those it has outgrown live until a full collection.
 */
export class PlacedList<Member extends Placed> {
  readonly #members: Member[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: Member): void {
    member.place = this.#members.push(member) - 1
  }

  has(member: Member): boolean {
    return member.place !== -1 && this.#members[member.place] === member
  }

  /** Whether it was there. The last one takes its place. */
  delete(member: Member): boolean {
    if (!this.has(member)) return false
    const { place } = member
    member.place = -1
    const last = this.#members.pop() as Member
    if (last !== member) {
      last.place = place
      this.#members[place] = last
    }
    return true
  }

  /** Of a copy: members may leave while they are gone through. */
  [Symbol.iterator](): IterableIterator<Member> {
    return this.#members.slice()[Symbol.iterator]()
  }
}
