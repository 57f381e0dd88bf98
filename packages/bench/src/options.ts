import { parseArgs } from 'node:util'

export interface Options {
  pace: 'quick' | 'full'
  /** Workloads by name; all when empty. */
  only: readonly string[]
  jsonFile: string | undefined
  list: boolean
  scale: number
  shards: number
}

export const USAGE = `npm run bench -- [options]
  --quick        fewer rounds and runs, all workloads; about a quarter of an hour
  --only A,B     only these workloads
  --json FILE    write the results there as JSON
  --list         say which workloads there are
  --scale N      multiply every size by N (to try the bench itself out)
  --shards N     how many shards Belfry's schema is made with (64)`

/** Reads the command line; a mistake in it is an error that names what would be right. */
export function readOptions(args: readonly string[], known: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'string' },
      list: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
      shards: { type: 'string', default: '64' },
    },
  })
  const only = values.only?.split(',').map((name) => name.trim()) ?? []
  const unknown = only.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new Error(`no workload ${unknown.join(', ')}; there are ${known.join(', ')}`)
  const scale = Number(values.scale)
  if (!(scale > 0)) throw new Error(`--scale must be a number above 0, not ${values.scale}`)
  const shards = Number(values.shards)
  if (!Number.isInteger(shards) || shards < 1 || shards > 4_096)
    throw new Error(`--shards must be a whole number from 1 to 4096, not ${values.shards}`)
  return { pace: values.quick ? 'quick' : 'full', only, jsonFile: values.json, list: values.list, scale, shards }
}
