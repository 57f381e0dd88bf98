import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JobOfCall } from '../../src/intake/job-input.ts'
import { job, setup } from './setup.ts'

type Act = 'succeed' | 'fail' | 'cancel'
type On = 'success' | 'failure' | 'finish'
type Policy = 'cancel' | 'run' | 'block'
interface Node {
  parents: number[]
  on: On
  policy: Policy
  act: Act
  retried: boolean
}
type Status = 'succeeded' | 'failed' | 'canceled' | 'skipped' | 'waits' | 'failed by parent'

const SIZE = 14
const graph = fc
  .array(
    fc.record({
      picks: fc.array(fc.nat(SIZE), { maxLength: 3 }),
      on: fc.constantFrom<On>('success', 'success', 'failure', 'finish'),
      policy: fc.constantFrom<Policy>('cancel', 'cancel', 'run', 'block'),
      act: fc.constantFrom<Act>('succeed', 'succeed', 'succeed', 'fail', 'cancel'),
      retried: fc.boolean(),
    }),
    { minLength: SIZE, maxLength: SIZE },
  )
  .map((nodes) =>
    nodes.map(
      ({ picks, ...node }, i): Node => ({
        ...node,
        parents: i === 0 ? [] : [...new Set(picks.map((pick) => pick % i))],
      }),
    ),
  )

/** What an end of the parent means, in the words of the guide. */
function meaning(end: Status, { on, policy }: Node): 'yes' | 'failed' | 'not needed' | 'open' {
  if (end === 'waits') return 'open'
  const failed = end === 'failed' || end === 'canceled' || end === 'failed by parent'
  if (on === 'finish') return 'yes'
  if (on === 'failure') return failed ? 'yes' : 'not needed'
  return end === 'succeeded' || policy === 'run' ? 'yes' : 'failed'
}

/** How all jobs end; what has ended stays so, and so does what a child no longer waits for. */
function ends(nodes: readonly Node[], before: readonly Status[] | null, satisfied: Set<string>): Status[] {
  const found: Status[] = []
  for (const [i, node] of nodes.entries()) found.push(endOf(node, i, { found, was: before?.[i], satisfied }))
  return found
}

interface Sofar {
  found: readonly Status[]
  was: Status | undefined
  satisfied: Set<string>
}

function endOf(node: Node, i: number, { found, was, satisfied }: Sofar): Status {
  const isOver = was === 'succeeded' || was === 'canceled' || was === 'skipped' || was === 'failed'
  if (isOver && !(was === 'failed' && node.retried)) return was
  const meanings = node.parents.map((parent) => {
    if (satisfied.has(`${parent}>${i}`)) return 'yes'
    const one = meaning(found[parent] as Status, node)
    if (one === 'yes') satisfied.add(`${parent}>${i}`)
    return one
  })
  if (was === 'failed' || meanings.every((one) => one === 'yes'))
    return was !== undefined || node.act === 'succeed' ? 'succeeded' : node.act === 'fail' ? 'failed' : 'canceled'
  if (meanings.includes('not needed')) return 'skipped'
  return meanings.includes('failed') && node.policy === 'cancel' ? 'failed by parent' : 'waits'
}

const shown = (status: Status): string =>
  status === 'waits' ? 'blocked' : status === 'failed by parent' ? 'canceled' : status

test('random graphs end as a simple model says, also when failed jobs are retried', async () => {
  const t = await setup()
  const graphs = fc.sample(graph, { numRuns: 30, seed: 7 })
  const made: { nodes: Node[]; ids: string[]; satisfied: Set<string>; before: Status[] }[] = []
  for (const [g, nodes] of graphs.entries()) {
    const call = nodes.map(({ parents, on, policy, act }, i): JobOfCall => {
      const name = `${g}.${i}`
      if (act === 'fail') t.fails(name)
      if (act === 'cancel') t.acts.set(name, (run) => run.cancel('no'))
      const waits = {
        after: { jobs: parents.map(String), on },
        ...(on === 'success' ? { onParentFailure: policy } : {}),
      }
      return job(String(i), { payload: name, ...(parents.length === 0 ? {} : waits) })
    })
    const ids = (await t.kit.jobs.createMany(call.toReversed())).toReversed().map(({ jobId }) => jobId)
    const satisfied = new Set<string>()
    made.push({ nodes, ids, satisfied, before: ends(nodes, null, satisfied) })
  }
  const statusesOf = async (ids: string[]) => {
    const rows = await t.query<{ id: string; status: string }>(
      `select u.id, coalesce((select 'blocked' from runs r where r.job_id = u.id),
         (select (array['', 'succeeded', 'failed', 'canceled', 'lost', '', '', 'skipped'])[a.outcome + 1] from attempts a
          where a.job_id = u.id and a.final order by a.finished_at desc, a.number desc limit 1)) as status
       from unnest($1::uuid[]) as u (id)`,
      [ids],
    )
    return rows.map(({ status }) => status)
  }
  await t.kit.settle()
  for (const { ids, before } of made) expect(await statusesOf(ids)).toEqual(before.map(shown))
  for (const [g, { nodes, ids, before }] of made.entries()) {
    for (const [i, { retried }] of nodes.entries()) {
      t.works(`${g}.${i}`)
      if (retried && before[i] === 'failed') await t.kit.runs.retry(String((await t.lastRun(ids[i]))?.id))
    }
  }
  await t.kit.settle()
  for (const { nodes, ids, before, satisfied } of made)
    expect(await statusesOf(ids)).toEqual(ends(nodes, before, satisfied).map(shown))
  // Nobody ran twice but those that were retried.
  const twice = t.seen().filter((name, i, all) => all.indexOf(name) !== i)
  const retried = made.flatMap(({ nodes, before }, g) =>
    nodes.flatMap((node, i) => (node.retried && before[i] === 'failed' ? [`${g}.${i}`] : [])),
  )
  expect(twice.sort()).toEqual(retried.sort())
  expect(await t.query('select from outbox')).toEqual([])
})
