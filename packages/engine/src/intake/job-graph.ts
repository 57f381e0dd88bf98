import { isJobId } from '../job/ids.ts'
import { nearestName } from '../job/nearest-name.ts'
import { shown } from '../schedule/not-understood.ts'
import { Misplaced } from './misplaced.ts'
import type { UnderstoodJob } from './understand-job.ts'

/** Who of a call waits for whom: a position in the call, or the id of a job that is there already. */
export interface JobGraph {
  parentsOf: readonly (readonly (number | string)[])[]
  /** Every job after those that it waits for. */
  order: readonly number[]
}

/** A cycle is told by so many of its jobs at most. */
const MAX_SHOWN = 10

/** Null: nobody waits for anybody. Throws if a name is not known, is there twice, or waits for itself in the end. */
export function jobGraph(understood: readonly UnderstoodJob[]): JobGraph | null {
  if (understood.every(({ definition, ref }) => definition.after === undefined && ref === null)) return null
  const positions = positionsOf(understood)
  const parentsOf = understood.map(({ definition }, position) =>
    (definition.after?.jobs ?? []).map((name, i) => {
      const found = positions.get(name)
      if (found !== undefined) return found
      if (isJobId(name)) return name
      throw unknownName(name, i, { position, names: [...positions.keys()] })
    }),
  )
  return { parentsOf, order: inOrder(parentsOf, understood) }
}

function positionsOf(understood: readonly UnderstoodJob[]): Map<string, number> {
  const positions = new Map<string, number>()
  understood.forEach(({ ref }, position) => {
    if (ref === null) return
    const first = positions.get(ref)
    if (first !== undefined) {
      const message = `${shown(ref)} is the name of job ${first} already`
      throw new Misplaced(position, { path: 'ref', message })
    }
    positions.set(ref, position)
  })
  return positions
}

function unknownName(name: string, i: number, call: { position: number; names: readonly string[] }): Misplaced {
  const message = `${shown(name)} is neither the id of a job nor the ref of one in this call`
  const suggestion = nearestName(name, call.names)
  const complaint = { path: `after.jobs[${i}]`, message, ...(suggestion === undefined ? {} : { suggestion }) }
  return new Misplaced(call.position, complaint)
}

/** Depth first, with a stack of its own: a chain may be as long as the call. */
function inOrder(
  parentsOf: readonly (readonly (number | string)[])[],
  understood: readonly UnderstoodJob[],
): readonly number[] {
  const order: number[] = []
  const state = new Uint8Array(parentsOf.length)
  for (let start = 0; start < parentsOf.length; start++) {
    if (state[start] !== 0) continue
    const trail = [start]
    const next = [0]
    state[start] = 1
    while (trail.length > 0) {
      const at = trail.at(-1) as number
      const parent = parentsOf[at]?.[(next[next.length - 1] as number)++]
      if (parent === undefined) {
        state[at] = 2
        order.push(at)
        trail.pop()
        next.pop()
      } else if (typeof parent === 'number') {
        if (state[parent] === 1) throw cycle([...trail.slice(trail.indexOf(parent)), parent], understood)
        if (state[parent] === 2) continue
        state[parent] = 1
        trail.push(parent)
        next.push(0)
      }
    }
  }
  return order
}

/** The path from a job to itself, along what each waits for. */
function cycle(path: readonly number[], understood: readonly UnderstoodJob[]): Misplaced {
  const names = path.map((position) => understood[position]?.ref ?? `job ${position}`)
  const left = names.length - MAX_SHOWN
  const shortened =
    left <= 0 ? names : [...names.slice(0, MAX_SHOWN - 2), `… ${left} more …`, ...names.slice(MAX_SHOWN - 2 + left)]
  const message = `waits for itself: ${shortened.join(' → ')}`
  return new Misplaced(path[0] as number, { path: 'after', message })
}
