import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
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
    const answer: Redriven = { count: 0, runIds: [] }
    // A filter takes a part at a time; what it took is no longer there for the next.
    for (let took = FULL_PART; took >= FULL_PART; ) {
      const part = await node.post<Redriven>('/v1/dead-letters/redrive', { ...which, dryRun })
      answer.count += part.count
      answer.runIds.push(...part.runIds)
      took = dryRun || 'runIds' in which ? 0 : part.count
    }
    const runs = answer.count === 1 ? '1 run' : `${answer.count} runs`
    terminal.answer(answer, dryRun ? `${atLeast(answer.count)}${runs} would be opened again` : `${runs} opened again`)
  },
}

/** A dry run sees the first part only. */
const atLeast = (count: number): string => (count >= FULL_PART ? 'at least ' : '')
