import { cutTo, harmless, padTo, widthOf } from './text-width.ts'

export interface Column<Row> {
  title: string
  of(row: Row): string
  /** May be cut when the screen is narrow, down to this width. What people copy, such as an id, is never cut. */
  atLeast?: number
  /** Left out when cutting is not enough, the highest first. */
  spare?: number
}

interface Filled {
  cells: readonly string[]
  atLeast: number
  spare: number
  width: number
}

const GAP = 2

/** A table that fits the screen: cuts first, then leaves out. */
export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], screen: number | null): string {
  let filled = columns
    .map((column): Filled => {
      const cells = [column.title, ...rows.map((row) => harmless(column.of(row)))]
      const width = Math.max(...cells.map(widthOf))
      return { cells, width, atLeast: Math.min(column.atLeast ?? width, width), spare: column.spare ?? 0 }
    })
    // A column that says nothing takes room from the others.
    .filter(({ cells }) => cells.slice(1).some((cell) => cell !== ''))
  if (screen !== null) filled = fit(filled, screen)
  return Array.from({ length: rows.length + 1 }, (_, line) =>
    filled
      .map(({ cells, width }) => padTo(cutTo(cells[line] ?? '', width), width))
      .join(' '.repeat(GAP))
      .trimEnd(),
  ).join('\n')
}

function fit(columns: readonly Filled[], screen: number): Filled[] {
  let kept = [...columns]
  const least = () => kept.reduce((sum, { atLeast }) => sum + atLeast + GAP, -GAP)
  while (least() > screen) {
    const last = Math.max(...kept.map(({ spare }) => spare))
    if (last === 0) break
    kept = kept.filter(({ spare }) => spare !== last)
  }
  let over = kept.reduce((sum, { width }) => sum + width + GAP, -GAP) - screen
  // The last columns hold the long texts; they give way first.
  return kept
    .toReversed()
    .map((column) => {
      const cut = Math.max(0, Math.min(over, column.width - column.atLeast))
      over -= cut
      return { ...column, width: column.width - cut }
    })
    .toReversed()
}
