/** A field of a canonical expression, as the words about it need it. */
export type FieldShape =
  | { kind: 'all' }
  /** Each of a step, from the start of the field. */
  | { kind: 'step'; step: number }
  /** Numbers that were written one by one. */
  | { kind: 'list'; values: readonly number[] }
  | { kind: 'range'; from: number; to: number; step: number }
  /** Ranges in a list, `H`, and whatever else has no short name. */
  | { kind: 'odd'; text: string }

const RANGE = /^(\d+)-(\d+)(?:\/(\d+))?$/

export function shapeOf(text: string): FieldShape {
  if (text === '*') return { kind: 'all' }
  if (/^\*\/\d+$/.test(text)) return { kind: 'step', step: Number(text.slice(2)) }
  if (/^[\d,]+$/.test(text)) return { kind: 'list', values: sorted(text.split(',').map(Number)) }
  const range = RANGE.exec(text)
  if (range === null) return { kind: 'odd', text }
  return { kind: 'range', from: Number(range[1]), to: Number(range[2]), step: Number(range[3] ?? 1) }
}

/** All numbers of a field that has only numbers, ranges and steps. */
export function valuesOf(text: string, bounds: { min: number; max: number }): number[] | undefined {
  const values = new Set<number>()
  for (const item of text.split(',')) {
    const shape = shapeOf(item)
    if (shape.kind === 'odd') return undefined
    const { from, to, step } = spanOf(shape, bounds)
    if (shape.kind === 'list') for (const value of shape.values) values.add(value)
    else for (let value = from; value <= to; value += step) values.add(value)
  }
  return sorted([...values])
}

function spanOf(shape: FieldShape, { min, max }: { min: number; max: number }) {
  if (shape.kind === 'range') return shape
  return { from: min, to: max, step: shape.kind === 'step' ? shape.step : 1 }
}

function sorted(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b)
}
