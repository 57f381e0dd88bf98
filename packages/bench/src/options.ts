import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Workload } from './workload.ts'

export interface Options {
  pace: 'quick' | 'full'
  /** Workloads by name; all when empty. */
  only: readonly string[]
  /** Subjects by name; all when empty, or those of Belfry when there is a program to compare with. */
  subjects: readonly string[]
  /** The directory of the checkout to compare with. */
  against: string | undefined
  /** As many as the workload asks for when undefined. */
  rounds: number | undefined
  jsonFile: string | undefined
  list: boolean
  scale: number
  shards: number
}

export const USAGE = `npm run bench -- [options]
  --quick          fewer rounds and runs, all workloads; about twenty minutes
  --only A,B       only these workloads
  --subject NAME   only this subject of each workload; may be given several times
  --rounds N       how often each subject is measured
  --against DIR    measure the Belfry of another checkout too, in turn with this one, and compare pair by pair
  --json FILE      write the results there as JSON
  --list           say which workloads there are, and their subjects
  --scale N        multiply every size by N (to try the bench itself out)
  --shards N       how many shards Belfry's schema is made with (64)`

/** Reads the command line; a mistake in it is an error that names what would be right. */
export function readOptions(args: readonly string[], workloads: readonly Workload[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      subject: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      against: { type: 'string' },
      json: { type: 'string' },
      list: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
      shards: { type: 'string', default: '64' },
    },
  })
  const only = values.only?.split(',').map((name) => name.trim()) ?? []
  const known = workloads.map(({ name }) => name)
  const unknown = only.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new Error(`no workload ${unknown.join(', ')}; there are ${known.join(', ')}`)
  const chosen = workloads.filter(({ name }) => only.length === 0 || only.includes(name))
  const performers = [...new Set(chosen.flatMap(({ subjects }) => subjects.map(({ name }) => name)))]
  const strangers = values.subject.filter((name) => !performers.includes(name))
  if (strangers.length > 0)
    throw new Error(`no subject ${strangers.join('; ')}; the chosen workloads have ${performers.join('; ')}`)
  const scale = Number(values.scale)
  if (!(scale > 0)) throw new Error(`--scale must be a number above 0, not ${values.scale}`)
  const shards = Number(values.shards)
  if (!Number.isInteger(shards) || shards < 1 || shards > 4_096)
    throw new Error(`--shards must be a whole number from 1 to 4096, not ${values.shards}`)
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds >= 1))
    throw new Error(`--rounds must be a whole number from 1, not ${values.rounds}`)
  return {
    pace: values.quick ? 'quick' : 'full',
    only,
    subjects: values.subject,
    against: values.against === undefined ? undefined : resolve(values.against),
    rounds,
    jsonFile: values.json,
    list: values.list,
    scale,
    shards,
  }
}
