import { readFileSync } from 'node:fs'
import { expect, expectTypeOf, test } from 'vitest'
import { BelfryClient } from '../client.ts'
import { OPTION_NAMES, QUEUE_OPTION_NAMES, type WorkerOptions } from './options.ts'
import type { Run } from './run.ts'
import { Worker } from './worker.ts'

const client = new BelfryClient({ url: 'http://127.0.0.1:1', key: 'k' })
const handler = () => {}

test('a handler gets one run, and many only where its queue says batch', () => {
  const options: WorkerOptions = {
    client,
    queues: {
      one: { handler: (run) => expectTypeOf(run).toEqualTypeOf<Run>() },
      many: { handler: (runs: Run[]) => runs.length, batch: { size: 10 } },
      // @ts-expect-error: without `batch` it is called with one
      wrong: { handler: (runs: Run[]) => runs.length },
    },
  }
  expect(new Worker(options).id).toMatch(/^[\w.-]+-\d+-[0-9a-f]{8}$/)
})

test.each([
  [{ queues: {} }, 'queues must name at least one queue'],
  [{ queues: { a: { handler } }, grace: 1 }, 'grace is not an option'],
  [{ queues: { a: { handler, concurency: 5 } } }, 'queues.a.concurency is not an option'],
  [{ queues: { a: { handler, concurrency: 0 } } }, 'queues.a.concurrency must be a whole number from 1'],
  [{ queues: { a: {} } }, 'queues.a.handler must be a function'],
  [{ queues: { a: { handler, batch: { size: 1_001 } } } }, 'queues.a.batch.size must be'],
  [{ queues: { a: { handler, batch: {} } } }, 'queues.a.batch.size is missing'],
  [{ queues: { a: { handler } }, leaseMs: 999 }, 'leaseMs must be'],
  [{ queues: { a: { handler } }, id: 'a b' }, 'id must be'],
])('options that make no sense are refused when the worker is made: %j', (options, words) => {
  expect(() => new Worker({ client, ...options } as WorkerOptions)).toThrow(words)
})

test('the page of the worker names every option', () => {
  const page = readFileSync(new URL('../../../../docs/reference/worker.md', import.meta.url), 'utf8')
  for (const name of [...OPTION_NAMES, ...QUEUE_OPTION_NAMES])
    if (name !== 'runtime') expect(page).toContain(`\`${name}\``)
})
