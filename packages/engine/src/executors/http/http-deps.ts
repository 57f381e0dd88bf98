import type { Random } from '../../runtime/random.ts'
import type { HttpDeps } from './http-call.ts'
import { OAuthTokens } from './oauth-tokens.ts'
import { TraceParents } from './trace-parent.ts'
import { Transport, type TransportOptions } from './transport.ts'

type Vaults = Pick<HttpDeps, 'secrets' | 'payloads' | 'signingKeys'>

/** What `perform` needs, once per node; whoever made it closes its transport. */
export function httpDeps(options: TransportOptions & Vaults & { random: Random }): HttpDeps {
  const { clock, random, secrets, signingKeys, payloads } = options
  const transport = new Transport(options)
  const tokens = new OAuthTokens({ clock, transport })
  return { clock, secrets, signingKeys, payloads, transport, tokens, traceParents: new TraceParents(random) }
}
