import { cutTo, harmless } from '../terminal/text-width.ts'
import type { Read } from './entry.ts'
import type { Preview, Reported } from './take-over.ts'

/** What becomes of a file: for a person, each difference that concerns all entries said once. */
export function reportText(
  entries: readonly Reported[],
  { passedOver }: Read,
  { isApplied }: { isApplied: boolean },
): string {
  const shared = sharedDifferences(entries)
  return [
    ...entries.map((entry) => entryText(entry, shared)),
    ...(shared.size === 0 ? [] : [listText('for all of them', [...shared])]),
    ...(passedOver.length === 0 ? [] : [listText('passed over, since they are no schedules', passedOver)]),
    summaryOf(entries, isApplied),
  ].join('\n\n')
}

/** The same for a program: whole, entry by entry. */
export function reportDocument(entries: readonly Reported[], { passedOver }: Read) {
  return {
    entries: entries.map(({ place, source, plan, preview, done }) => ({
      place,
      source,
      ...(plan.kind === 'refused'
        ? { refused: plan.reason }
        : { name: plan.name, job: plan.job, paused: plan.isSuspended, differences: plan.differences }),
      ...(preview === undefined ? {} : { understoodAs: preview.understoodAs, times: preview.times }),
      ...(done === undefined ? {} : { done }),
    })),
    passedOver,
  }
}

export const refusedOf = (entries: readonly Reported[]): Reported[] =>
  entries.filter(({ plan }) => plan.kind === 'refused')

function entryText({ place, source, plan, preview, done }: Reported, shared: ReadonlySet<string>): string {
  const head = cutTo(harmless([place, source].filter(Boolean).join(': ')), MAX_HEAD)
  if (plan.kind === 'refused') return `${head}\n${linesOf('not taken', plan.reason.split('\n'))}`
  return [
    head,
    linesOf('job', [`${plan.name}${plan.isSuspended ? ', paused' : ''}${done === undefined ? '' : ` (${done})`}`]),
    linesOf('when', preview === undefined ? [whenOf(plan.job)] : [preview.understoodAs]),
    linesOf('next', (preview?.times ?? []).map(timeOf)),
    linesOf(
      'differs',
      plan.differences.filter((difference) => !shared.has(difference)),
    ),
  ]
    .filter((lines) => lines !== '')
    .join('\n')
}

function timeOf({ utc, local, dst }: Preview['times'][number]): string {
  const mark = dst === undefined ? '' : dst === 'gap' ? ', after the gap' : ', in the repeated hour'
  return local === utc ? utc : `${local} (${utc}${mark})`
}

function whenOf(job: Readonly<Record<string, unknown>>): string {
  return [job.cron ?? (job.every === undefined ? job.runAt : `every ${job.every}`), job.timezone]
    .filter(Boolean)
    .join(' ')
}

/** With one entry everything stands beside it. */
function sharedDifferences(entries: readonly Reported[]): Set<string> {
  const lists = entries.flatMap(({ plan }) => (plan.kind === 'job' ? [plan.differences] : []))
  const [first = []] = lists
  if (lists.length < 2) return new Set()
  return new Set(first.filter((difference) => lists.every((list) => list.includes(difference))))
}

const LABEL_WIDTH = 11
/** A command may be as long as a book. */
const MAX_HEAD = 500

function linesOf(label: string, lines: readonly string[]): string {
  return lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(LABEL_WIDTH)}${harmless(line)}`).join('\n')
}

const listText = (title: string, lines: readonly string[]): string =>
  [`${title}:`, ...lines.map((line) => `  ${harmless(line)}`)].join('\n')

function summaryOf(entries: readonly Reported[], isApplied: boolean): string {
  const taken = entries.length - refusedOf(entries).length
  const counted = `${taken} of ${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}`
  if (!isApplied) return `${counted} can be taken over; nothing has been created: --apply does that`
  const count = (what: Reported['done']) => entries.filter(({ done }) => done === what).length
  return `${counted} taken over: ${count('created')} created, ${count('changed')} changed, ${count('unchanged')} as before`
}
