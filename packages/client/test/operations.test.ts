import { expect, test } from 'vitest'
import { BelfryClient } from '../src/index.ts'
import { loadOpenApi } from './openapi.ts'

/** The method that calls each operation; of path parameters, those that the record below says. */
const METHODS: Record<string, (client: BelfryClient) => PromiseLike<unknown>> = {
  'POST /v1/jobs': ({ jobs }) => jobs.create({ queue: 'q' }),
  'POST /v1/jobs/batch': ({ jobs }) => jobs.createMany([{ queue: 'q' }]),
  'GET /v1/jobs': ({ jobs }) => jobs.list(),
  'GET /v1/jobs/{jobId}': ({ jobs }) => jobs.get('{jobId}'),
  'PATCH /v1/jobs/{jobId}': ({ jobs }) => jobs.update('{jobId}', {}),
  'DELETE /v1/jobs/{jobId}': ({ jobs }) => jobs.delete('{jobId}'),
  'PUT /v1/jobs/by-name/{name}': ({ jobs }) => jobs.putByName('{name}', {}),
  'POST /v1/jobs/{jobId}/cancel': ({ jobs }) => jobs.cancel('{jobId}'),
  'POST /v1/jobs/{jobId}/pause': ({ jobs }) => jobs.pause('{jobId}'),
  'POST /v1/jobs/{jobId}/resume': ({ jobs }) => jobs.resume('{jobId}'),
  'POST /v1/jobs/{jobId}/trigger': ({ jobs }) => jobs.trigger('{jobId}'),
  'POST /v1/schedules/preview': ({ jobs }) => jobs.preview({ cron: '@daily' }),
  'GET /v1/jobs/{jobId}/changes': ({ jobs }) => jobs.changes('{jobId}'),
  'GET /v1/jobs/{jobId}/runs': ({ jobs }) => jobs.runs('{jobId}'),
  'GET /v1/jobs/{jobId}/explain': ({ jobs }) => jobs.explain('{jobId}', '2026-01-01T09:00:00Z'),
  'POST /v1/jobs/actions': ({ jobs }) => jobs.actions({ filter: { queue: 'q' }, action: 'pause' }),
  'POST /v1/jobs/{jobId}/backfill': ({ backfills }) => backfills.create('{jobId}', { from: '', to: '' }),
  'GET /v1/jobs/{jobId}/backfills': ({ backfills }) => backfills.list('{jobId}'),
  'GET /v1/batches/{batchId}': ({ batches }) => batches.get('{batchId}'),
  'GET /v1/backfills/{backfillId}': ({ backfills }) => backfills.get('{backfillId}'),
  'POST /v1/backfills/{backfillId}/cancel': ({ backfills }) => backfills.cancel('{backfillId}'),
  'GET /v1/runs': ({ runs }) => runs.list(),
  'GET /v1/runs/{runId}': ({ runs }) => runs.get('{runId}'),
  'GET /v1/runs/{runId}/logs': ({ runs }) => runs.logs('{runId}'),
  'POST /v1/runs/{runId}/cancel': ({ runs }) => runs.cancel('{runId}'),
  'POST /v1/runs/{runId}/retry': ({ runs }) => runs.retry('{runId}'),
  'GET /v1/dead-letters': ({ deadLetters }) => deadLetters.list(),
  'GET /v1/dead-letters/{runId}': ({ deadLetters }) => deadLetters.get('{runId}'),
  'DELETE /v1/dead-letters/{runId}': ({ deadLetters }) => deadLetters.delete('{runId}'),
  'POST /v1/dead-letters/redrive': ({ deadLetters }) => deadLetters.redrive({ filter: {} }),
  'GET /v1/queues': ({ queues }) => queues.list(),
  'GET /v1/queues/{queue}': ({ queues }) => queues.get('{queue}'),
  'PUT /v1/queues/{queue}': ({ queues }) => queues.put('{queue}'),
  'DELETE /v1/queues/{queue}': ({ queues }) => queues.delete('{queue}'),
  'POST /v1/queues/{queue}/pause': ({ queues }) => queues.pause('{queue}'),
  'POST /v1/queues/{queue}/resume': ({ queues }) => queues.resume('{queue}'),
  'POST /v1/queues/{queue}/purge': ({ queues }) => queues.purge('{queue}'),
  'GET /v1/queues/{queue}/scale': ({ queues }) => queues.scale('{queue}'),
  'GET /v1/pauses': ({ pauses }) => pauses.list(),
  'POST /v1/pauses': ({ pauses }) => pauses.create({ tenant: true }),
  'DELETE /v1/pauses/{id}': ({ pauses }) => pauses.end('{id}'),
  'POST /v1/queues/{queue}/lease': ({ leases }) => leases.lease('{queue}', { workerId: 'w' }),
  'POST /v1/leases/heartbeat': ({ leases }) => leases.heartbeat({ workerId: 'w', leases: [] }),
  'POST /v1/leases/complete': ({ leases }) => leases.complete({ workerId: 'w', results: [] }),
  'POST /v1/leases/release': ({ leases }) => leases.release({ workerId: 'w', leases: [] }),
  'GET /v1/calendars': ({ calendars }) => calendars.list(),
  'GET /v1/calendars/{name}': ({ calendars }) => calendars.get('{name}'),
  'PUT /v1/calendars/{name}': ({ calendars }) => calendars.put('{name}', { days: [] }),
  'DELETE /v1/calendars/{name}': ({ calendars }) => calendars.delete('{name}'),
  'GET /v1/workers': ({ workers }) => workers.list(),
  'GET /v1/workers/{workerId}': ({ workers }) => workers.get('{workerId}'),
  'PUT /v1/workers/{workerId}': ({ workers }) => workers.put('{workerId}'),
  'DELETE /v1/workers/{workerId}': ({ workers }) => workers.delete('{workerId}'),
  'PUT /v1/payloads': ({ payloads }) => payloads.put('text'),
  'GET /v1/payloads/{ref}': ({ payloads }) => payloads.get('{ref}'),
  'DELETE /v1/payloads/{ref}': ({ payloads }) => payloads.delete('{ref}'),
  'GET /v1/secrets': ({ secrets }) => secrets.list(),
  'GET /v1/secrets/{name}': ({ secrets }) => secrets.get('{name}'),
  'PUT /v1/secrets/{name}': ({ secrets }) => secrets.put('{name}', 'hush'),
  'DELETE /v1/secrets/{name}': ({ secrets }) => secrets.delete('{name}'),
  'GET /v1/signing-keys': ({ signingKeys }) => signingKeys.list(),
  'POST /v1/signing-keys/rotate': ({ signingKeys }) => signingKeys.rotate(),
  'GET /v1/origins': ({ origins }) => origins.list(),
  'GET /v1/origins/{origin}': ({ origins }) => origins.get('{origin}'),
  'PUT /v1/origins/{origin}': ({ origins }) => origins.put('{origin}', { maxRunning: 1 }),
  'DELETE /v1/origins/{origin}': ({ origins }) => origins.delete('{origin}'),
  'GET /v1/circuits': ({ circuits }) => circuits.list(),
  'POST /v1/circuits/{origin}/reset': ({ circuits }) => circuits.reset('{origin}'),
  'GET /v1/nodes': ({ nodes }) => nodes.list(),
  'POST /v1/tenants': ({ tenants }) => tenants.create({ name: 'acme' }),
  'GET /v1/tenants': ({ tenants }) => tenants.list(),
  'GET /v1/tenants/{tenantId}': ({ tenants }) => tenants.get('{tenantId}' as never),
  'PATCH /v1/tenants/{tenantId}': ({ tenants }) => tenants.update('{tenantId}' as never, {}),
  'DELETE /v1/tenants/{tenantId}': ({ tenants }) => tenants.delete('{tenantId}' as never),
  'POST /v1/api-keys': ({ apiKeys }) => apiKeys.create({ name: 'n', scopes: ['read'] }),
  'GET /v1/api-keys': ({ apiKeys }) => apiKeys.list(),
  'GET /v1/api-keys/{keyId}': ({ apiKeys }) => apiKeys.get('{keyId}'),
  'DELETE /v1/api-keys/{keyId}': ({ apiKeys }) => apiKeys.delete('{keyId}'),
  'POST /v1/api-keys/{keyId}/rotate': ({ apiKeys }) => apiKeys.rotate('{keyId}'),
  'GET /v1/whoami': (client) => client.whoami(),
  'GET /v1/stats': (client) => client.stats(),
  'GET /v1/forecast': (client) => client.forecast(),
}

/** Operations that the client has no method for, and why. */
const WITHOUT: Record<string, string> = {
  'GET /healthz': 'for load balancers, which ask by themselves',
  'GET /readyz': 'for load balancers, which ask by themselves',
  'POST /v1/callbacks/{token}': 'for targets, which have no key; the receiver kit calls it',
}

test('every operation of the server has a method that calls it, or a reason', async () => {
  const { paths } = await loadOpenApi()
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect([...Object.keys(METHODS), ...Object.keys(WITHOUT)].sort()).toEqual(operations.sort())
})

test.each(Object.entries(METHODS))('%s is what its method calls', async (route, method) => {
  const called: string[] = []
  const fetch = async (url: string, request: { method: string }) => {
    called.push(`${request.method} ${decodeURIComponent(new URL(url).pathname)}`)
    return new Response('{"items":[],"nextCursor":null}')
  }
  await method(new BelfryClient({ url: 'http://belfry.test', fetch }))
  expect(called).toEqual([route])
})
