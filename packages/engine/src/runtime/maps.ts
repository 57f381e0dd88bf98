/** In the order in which the keys first come. */
export function grouped<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

/** Sets it behind all others, and forgets the first of them where there would be more than `most`. */
export function setLast<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key)
  map.set(key, value)
  const [first] = map.size > most ? map.keys() : []
  if (first !== undefined) map.delete(first)
}

/** What is known of the key, or else what is made of it and known from then on. */
export function remembered<Key, Value>(
  known: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  let value = known.get(key)
  if (value !== undefined) return value
  value = make()
  known.set(key, value)
  return value
}
