import { Type } from 'typebox'
import type { App } from '../app.ts'
import { instant, nullable } from '../schemas/page.ts'

const node = Type.Object(
  {
    id: Type.String(),
    address: nullable(Type.String()),
    roles: Type.Array(Type.String({ examples: ['api', 'promoter', 'dispatcher', 'archivist'] })),
    startedAt: instant('When it started.'),
    pulsedAt: instant('When it last said that it is there.'),
  },
  { title: 'Node', additionalProperties: true },
)

export function nodeRoutes(app: App): void {
  app.get(
    '/v1/nodes',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Nodes'],
        summary: 'List the nodes that are there',
        response: { 200: Type.Object({ items: Type.Array(node) }) },
      },
    },
    async ({ service }) => ({ items: await service.nodes() }),
  )
}
