/** The charges of a node that is gone are of use for so long: whoever takes its place goes on from them. */
const REMEMBERED = "interval '1 minute'"

/**
 * Part of a pulse: which queues tenants share, which tenants weigh more than others, and what other nodes have charged. `clock.now`
 * is the time of the pulse, `node` the id of whoever asks.
 */
export const fleetTurns = (node: string): string =>
  `json_build_object(
       'shared', array(select q.id from belfry.queues q where q.shared),
       'weights', array(select array[t.id, t.weight] from belfry.tenants t where t.weight <> 1),
       'nodes', (select coalesce(json_agg(json_build_object('id', n.id, 'isLive', n.pulsed_at > clock.now - interval '2500 ms', 'charges', n.charges)), '[]')
         from belfry.nodes n where n.charges is not null and n.id <> ${node} and n.pulsed_at > clock.now - ${REMEMBERED}))::text`

/** What all nodes know together of whose turn it is. */
export interface FleetTurns {
  shared: number[]
  weights: [tenantId: number, weight: number][]
  nodes: NodeCharges[]
}

export interface NodeCharges {
  id: string
  isLive: boolean
  /** As that node wrote it. */
  charges: unknown
}
