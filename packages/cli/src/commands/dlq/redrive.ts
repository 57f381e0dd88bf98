import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { UsageError } from '../../usage-error.ts'
import { DEAD_LETTER_FLAGS, deadLetterFilter } from './filter.ts'

interface Redriven {
  count: number
  runIds: string[]
}

const FULL_PART = 1_000

export const redrive: Command = {
  name: 'dlq redrive',
  summary: 'open dead letters again: those named, those that a filter finds, or --all',
  operands: [{ name: 'run', about: 'ids of runs', count: 'any' }],
  flags: {
    ...DEAD_LETTER_FLAGS,
    all: { about: 'all of them' },
    rate: { value: 'n', about: 'so many runs per second, the oldest first, instead of all at once' },
    'dry-run': { about: 'only say how many it would be' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ operands, flags, terminal, api }) {
    const hasFilter = ['job', 'queue', 'failure-class'].some((name) => flags.is(name))
    if (Number(operands.length > 0) + Number(hasFilter) + Number(flags.is('all')) !== 1)
      throw new UsageError('name runs, or say which by --job, --queue and --failure-class, or take --all: one of these')
    const node = await api()
    const which = operands.length > 0 ? { runIds: operands } : { filter: await deadLetterFilter(node, flags) }
    const dryRun = flags.is('dry-run')
    const rate = flags.number('rate')
    const answer: Redriven = { count: 0, runIds: [] }
    // A filter takes a part at a time; what it took is no longer there for the next. With a rate each part begins now, so it is one.
    for (let took = FULL_PART; took >= FULL_PART; ) {
      const part = await node.post<Redriven>('/v1/dead-letters/redrive', { ...which, ...given({ rate }), dryRun })
      answer.count += part.count
      answer.runIds.push(...part.runIds)
      took = dryRun || rate !== undefined || 'runIds' in which ? 0 : part.count
    }
    const runs = answer.count === 1 ? '1 run' : `${answer.count} runs`
    const done =
      rate !== undefined && answer.count >= FULL_PART
        ? `${runs} opened again; there may be more`
        : `${runs} opened again`
    terminal.answer(answer, dryRun ? `${atLeast(answer.count)}${runs} would be opened again` : done)
  },
}

/** A dry run sees the first part only. */
const atLeast = (count: number): string => (count >= FULL_PART ? 'at least ' : '')
