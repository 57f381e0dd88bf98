/**
 * The connections of a node: 20 at most, whatever it is asked. Each share is only for what its line says, so one kind of work that
 * waits takes nothing from the others.
 */
export const CONNECTIONS = {
  /** Pulse; heartbeats, marks, ends and give-backs of leases; promotions and claims. */
  vital: 6,
  /** Single creates, and agents whose statements pass over what others hold. */
  work: 3,
  /** Changes that callers ask for: these may wait for a row that another transaction holds. */
  callers: 4,
  /** Redrives, backfills, calls of thousands of jobs, purges. */
  bulk: 2,
  /** A statement beside a transaction that is under way. */
  aside: 1,
  /** Tenants' reads. With a replica, half of them go there. */
  readers: 2,
  /** Listens to other nodes, and tells them. */
  notifier: 1,
  /** Makes and drops days of history, one after the other. */
  apart: 1,
} as const
