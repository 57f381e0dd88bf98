import { afterAll, beforeAll, expect, test } from 'vitest'
import { Worker } from '../src/worker/index.ts'
import { deeds, handler } from './worker-handler.ts'
import { createRun, finished, startWorkerServer, type WorkerServer } from './worker-kit.ts'

let server: WorkerServer
let worker: Worker
beforeAll(async () => {
  server = await startWorkerServer()
  await server.belfry.handle('library', handler, { concurrency: 10 })
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  worker = new Worker({ client: server.client, queues: { remote: { handler } }, handleSignals: false, logger: silent })
  worker.start()
})
afterAll(async () => {
  await worker.stop()
  await server.stop()
})

/** What history keeps of the run that does this, but for its times and ids. */
async function historyOf(queue: string, deed: string) {
  const { client } = server
  const isStopped = deed === 'stops when it is told to'
  const id = await createRun(client, {
    ...{
      queue,
      payload: deed,
      labels: { a: 'b' },
      retry: { maxAttempts: 3, backoff: { type: 'fixed', initial: '1ms' } },
    },
    ...(isStopped ? { timeout: '1s', retry: { maxAttempts: 1 } } : {}),
  })
  const { status, attempt, failures, result, progress, failureClass, error, attempts } = await finished(client, id)
  // A handler's lines are written in batches, perhaps after its end.
  const lines = async () => (await client.runs.logs(id)).items
  if (deed === 'logs') await expect.poll(async () => (await lines()).length).toBe(3)
  const items = await lines()
  return {
    ...{ status, attempt, failures, result, progress, failureClass },
    error: isStopped ? null : error,
    attempts: attempts.map(({ number, counted, status, failureClass, error }) => ({
      ...{ number, counted, status, failureClass },
      // The time is up for whoever watches: who says so first has the word.
      error: isStopped ? null : error?.replace(/^(RunError|BelfryError): .*/, 'refused'),
    })),
    logs: items.map(({ level, message }) => ({ level, message })),
  }
}

test.each(Object.keys(deeds))(
  'a handler that %s leaves the same history in the library and in a worker',
  async (deed) => {
    const [library, remote] = await Promise.all([historyOf('library', deed), historyOf('remote', deed)])
    if (deed === 'says a wrong delay') {
      // The words differ; that it failed, and how often, does not.
      library.error = remote.error = null
    }
    expect(remote).toEqual(library)
  },
)
