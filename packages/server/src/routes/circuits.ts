import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { instant } from '../schemas/page.ts'

const tags = ['Circuits']
const origin = Type.String({
  maxLength: 300,
  description: 'Scheme, host and port; percent-encoded in an address.',
  examples: ['https://api.example.com:443'],
})
const circuit = Type.Object(
  {
    origin,
    state: Type.String({ description: 'open: its runs wait; half_open: one of them tries.' }),
    openedAt: instant('Since when its runs wait.'),
    probeAt: instant('When it is tried again.'),
    failures: Type.Integer(),
    reason: Type.String({ description: 'What its last failures were.' }),
  },
  { title: 'Circuit', additionalProperties: true },
)

export function circuitRoutes(app: App): void {
  app.get(
    '/v1/circuits',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List the origins whose runs wait because they fail',
        response: { 200: Type.Object({ items: Type.Array(circuit) }) },
      },
    },
    async ({ tenant }) => ({ items: await tenant.circuits.list() }),
  )

  app.post(
    '/v1/circuits/:origin/reset',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Close a circuit by hand: its runs go on at once',
        params: Type.Object({ origin }, { additionalProperties: false }),
        response: { 200: Type.Object({ origin }) },
      },
    },
    async ({ tenant, params }) => {
      if (!(await tenant.circuits.reset(params.origin)))
        throw new BelfryError('not_found', `there is no open circuit for ${params.origin}`)
      return { origin: params.origin }
    },
  )
}
