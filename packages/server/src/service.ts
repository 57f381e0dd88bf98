import type { Belfry } from '@belfry/engine'

/** What the server asks of a node. */
export type Service = Pick<
  Belfry,
  'ping' | 'readiness' | 'nodes' | 'completeCallback' | 'endLeaseCalls' | 'tenant' | 'admin' | 'forecast'
>

/** What a key may do; `admin` may do everything, `write` may read. */
export type Scope = 'read' | 'write' | 'worker' | 'admin'
