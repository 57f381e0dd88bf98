import { hash } from 'node:crypto'

/**
 * The shards that rendezvous hashing over the live nodes gives to one of them. Nothing is stored: during a change two nodes
 * may promote one shard for a moment, and the compare-and-set lets one win.
 */
export function shardsOwnedBy(nodeId: string, liveNodes: readonly string[], shards: number): number[] {
  const owned: number[] = []
  for (let shard = 0; shard < shards; shard++) {
    let best = ''
    let owner = nodeId
    for (const node of liveNodes) {
      const weight = hash('sha256', `${node}:${shard}`, 'hex')
      if (weight > best) {
        best = weight
        owner = node
      }
    }
    if (owner === nodeId) owned.push(shard)
  }
  return owned
}
