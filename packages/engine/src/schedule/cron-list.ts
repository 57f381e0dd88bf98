import { type CronField, DAY_OF_MONTH, DAY_OF_WEEK } from './cron-field.ts'

interface PlainItem {
  from: number
  to: number
  step: number
  text: string
  values: ReadonlySet<number>
}

const PLAIN = /^(?:(\*)|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/
const WHOLE_WEEK = 7

/**
 * One spelling for a list of canonical items: in order, nothing twice, nothing that another item holds already, and ranges
 * that meet as one. A list of single numbers stays one, since hours mean something else as a range when the clocks change.
 */
export function canonicalItems(items: readonly string[], field: CronField): string {
  const plain = items.map((item) => plainItem(item, field))
  const special = items.filter((_, index) => plain[index] === undefined)
  const joined = withoutHeld(joinedRanges(plain.filter((item) => item !== undefined)))
  const texts = [...new Set([...joined.map((item) => spelling(item, field)), ...special.sort()])]
  return texts.includes('*') ? '*' : texts.join(',')
}

function plainItem(text: string, field: CronField): PlainItem | undefined {
  const match = PLAIN.exec(text)
  if (match === null) return undefined
  const from = match[1] === undefined ? Number(match[2]) : field.min
  const to = match[1] === undefined ? Number(match[3] ?? match[2]) : field.max
  return itemOf({ from, to, step: Number(match[4] ?? 1), text }, field)
}

function itemOf(item: Omit<PlainItem, 'values'>, field: CronField): PlainItem {
  const values = new Set<number>()
  for (let value = item.from; value <= item.to; value += item.step) {
    values.add(field === DAY_OF_WEEK ? value % WHOLE_WEEK : value)
  }
  return { ...item, values }
}

function joinedRanges(items: readonly PlainItem[]): PlainItem[] {
  const result: PlainItem[] = []
  for (const item of [...items].sort((one, other) => one.from - other.from || other.to - one.to)) {
    const last = result.findLast(({ step }) => step === 1)
    const meets = last !== undefined && item.step === 1 && item.from <= last.to + 1
    const isList = last !== undefined && last.from === last.to && item.from === item.to
    if (!meets || isList) {
      result.push(item)
      continue
    }
    const to = Math.max(last.to, item.to)
    const values = new Set([...last.values, ...item.values])
    result[result.indexOf(last)] = { from: last.from, to, step: 1, text: `${last.from}-${to}`, values }
  }
  return result
}

function withoutHeld(items: readonly PlainItem[]): PlainItem[] {
  return items.filter((item, index) => {
    const isHeldBy = (other: PlainItem, at: number) =>
      at !== index &&
      [...item.values].every((value) => other.values.has(value)) &&
      // Of two that hold the same, the first stays.
      (other.values.size > item.values.size || at < index)
    return !items.some(isHeldBy)
  })
}

/** All of a field is `*`, but for days: there a range restricts, and `*` does not. */
function spelling({ from, to, step, text, values }: PlainItem, field: CronField): string {
  if (step !== 1 || text === '*') return text
  if (field === DAY_OF_WEEK) return values.size === WHOLE_WEEK ? '0-6' : text
  return field !== DAY_OF_MONTH && from === field.min && to === field.max ? '*' : text
}
