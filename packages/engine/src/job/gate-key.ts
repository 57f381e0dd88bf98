import { hash64 } from './ids.ts'

/**
 * What may put a run aside that is about to start: a pause of its tenant (whose name is empty) or of the origin that it calls, the
 * origin's circuit, the number of runs that the origin's limit allows at a time, or its rate.
 */
type GateKind = 'pause' | 'circuit' | 'origin' | 'rate'

/**
 * The gate that a run stands at, in `runs.gate_key`. A waiting run has the gate that put it aside, so that all runs of one gate are
 * found when it opens; a leased run has the limited origin whose slot it holds.
 */
export const gateKeyOf = (kind: GateKind, tenantId: number, name: string): string =>
  hash64(`${kind}/${tenantId}/${name}`)
