import { nearestName } from '@belfry/engine'
import type { Api } from '../../api/api.ts'
import { Problem } from '../../api/problem.ts'
import type { Queue } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { type Flags, type FlagTable, given } from '../../command/flags.ts'
import { LIMIT_FLAGS, limitFields, wholeOrNone } from '../../limit-fields.ts'
import { UsageError } from '../../usage-error.ts'
import { QUEUE_OPERAND, showQueue } from './queue-table.ts'

const ROOM_FLAGS: FlagTable = {
  'max-depth': { value: 'n', about: 'creates are refused while so many runs wait; none takes the limit away' },
  'max-age': {
    value: 'time',
    about: 'creates are refused while the next run has waited for longer: 5m, PT5M; or none',
  },
}
/** Names that are looked through for one that was meant. */
const MAX_NAMES = 1_000

/** The API makes a queue that it is told about; a mistyped name would be one that nobody sees. */
export const limitQueue: Command = {
  name: 'queues limit',
  summary: 'how many runs of a queue may be under way at a time, start in a period, or wait',
  operands: [QUEUE_OPERAND],
  flags: { ...LIMIT_FLAGS, ...ROOM_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  details: `  belfry queues limit emails --max-running 20
  belfry queues limit emails --rate 100/1s --burst 20
  belfry queues limit emails --max-depth 10000 --max-age 5m
  belfry queues limit emails --max-running none`,
  async run({ operands: [name = ''], flags, terminal, api }) {
    const body = readQueueLimits(flags)
    const node = await api()
    await mustExist(node, name)
    showQueue(terminal, await node.ask<Queue>('PUT', `/v1/queues/${encodeURIComponent(name)}`, { body }))
  },
}

function readQueueLimits(flags: Flags) {
  const age = flags.text('max-age')
  const room = given({ maxDepth: wholeOrNone(flags, 'max-depth'), maxAge: age === 'none' ? null : age })
  const found = { ...limitFields(flags), ...room }
  if (Object.keys(found).length > 0) return found
  throw new UsageError('there is nothing to limit: give --max-running, --rate, --max-depth or --max-age')
}

async function mustExist(api: Api, name: string): Promise<void> {
  const { items } = await api.list<Queue>('/v1/queues', {}, MAX_NAMES)
  if (items.some((queue) => queue.name === name)) return
  try {
    await api.get(`/v1/queues/${encodeURIComponent(name)}`)
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error
    const nearest = nearestName(
      name,
      items.map((queue) => queue.name),
    )
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
    const message = `there is no queue ${JSON.stringify(name)} (not_found)${hint}`
    throw new Problem(message, { status: 404, code: 'not_found' })
  }
}
