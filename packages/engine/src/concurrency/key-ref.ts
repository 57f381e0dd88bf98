/** A key that runs share a limit by, and the shard that its row is on. */
export interface KeyRef {
  shard: number
  key: string
}
