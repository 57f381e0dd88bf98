import type { ArrayValues } from '../store/arrays.ts'

/** A key that runs share a limit by, and the shard that its row is on. */
export interface KeyRef {
  shard: number
  key: string
}

export const refArrays = (keys: readonly KeyRef[]): [shards: ArrayValues, keys: ArrayValues] => [
  keys.map(({ shard }) => shard),
  keys.map(({ key }) => key),
]
