/** Names longer than this are not compared: no name of ours is, and the work grows with the square. */
const MAX_LENGTH = 64

/**
 * The name somebody probably meant, or `undefined` if none is near. Case, dashes and underscores do not count, so that
 * `run_at` finds `runAt`.
 */
export function nearestName(word: string, names: Iterable<string>): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  const wanted = fold(word)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const name of names) {
    const distance = editDistance(wanted, fold(name), bestDistance)
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}

function fold(text: string): string {
  return text.toLowerCase().replace(/[-_\s]/g, '')
}

/** Insertions, deletions, replacements and swapped neighbours; anything from `limit` on is answered as `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(replaced, at(last, j) + 1, at(row, j - 1) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, at(beforeLast, j - 2) + 1)
      }
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return Math.min(limit, at(last, b.length))
}

function at(row: number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
