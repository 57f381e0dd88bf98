import { startServer } from '@belfry/server'

export interface OpenApi {
  paths: Record<string, Record<string, { operationId: string }>>
  components: object
}

/** What the server says of itself; it needs no database for that. */
export async function loadOpenApi(): Promise<OpenApi> {
  const server = await startServer({ belfry: () => null, adminKey: null, host: '127.0.0.1', port: 0 })
  try {
    const answer = await fetch(`http://127.0.0.1:${server.port}/openapi.json`)
    return (await answer.json()) as OpenApi
  } finally {
    await server.stop()
  }
}
