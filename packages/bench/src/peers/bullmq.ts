import { createRequire } from 'node:module'
import { connect as connectSocket } from 'node:net'
import { Queue, Worker } from 'bullmq'
import { waitUntilReached } from '../database.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, NotHere, type Setting, sized } from '../workload.ts'

/**
 * BullMQ on Redis with 200 jobs at once. Redis keeps its data in memory and writes it out later: what it has
 * acknowledged can be lost, so it promises less than the others here.
 */
const CONCURRENCY = 200
const CHUNK = 5_000
const DEADLINE_MS = 300_000

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const redis = await findRedis()
  const prefix = `belfry-bench-${process.pid}`

  async function drain(name: string, jobs: number): Promise<number> {
    const queue = new Queue(name, { connection: redis, prefix })
    for (let from = 0; from < jobs; from += CHUNK) {
      const length = Math.min(CHUNK, jobs - from)
      await queue.addBulk(Array.from({ length }, (_, index) => ({ name: 'noop', data: { n: from + index } })))
    }
    const tally = tallyUntil(jobs, DEADLINE_MS)
    const worker = new Worker(name, async () => tally.count(), {
      connection: redis,
      prefix,
      concurrency: CONCURRENCY,
      autorun: false,
    })
    await worker.waitUntilReady()
    try {
      const startedAt = performance.now()
      const running = worker.run()
      await tally.all
      await waitUntilReached(() => queue.getCompletedCount(), jobs, {
        what: 'BullMQ, jobs completed',
        deadlineMs: 30_000,
      })
      const seconds = (performance.now() - startedAt) / 1_000
      mustEqual('BullMQ, jobs processed', tally.counted, jobs)
      await worker.close()
      await running
      return jobs / seconds
    } finally {
      await worker.close()
      await queue.obliterate({ force: true })
      await queue.close()
    }
  }

  await drain('warm-up', 10_000)
  const rate = await drain('noop', sized(setting, { quick: 60_000, full: 200_000 }))
  return [{ name: 'pre_enqueued', value: rate, unit: 'runs/s' }]
}

async function findRedis(): Promise<{ host: string; port: number; maxRetriesPerRequest: null }> {
  const address = new URL(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
  const host = address.hostname
  const port = Number(address.port || 6379)
  if (!(await answers(host, port))) throw new NotHere('no Redis answers on REDIS_URL or 127.0.0.1:6379')
  try {
    // BullMQ leaves its Redis driver to whoever installs it.
    createRequire(createRequire(import.meta.url).resolve('bullmq')).resolve('ioredis')
  } catch {
    throw new NotHere('Redis answers, but BullMQ finds no driver: npm install --no-save ioredis')
  }
  return { host, port, maxRetriesPerRequest: null }
}

function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectSocket({ host, port, timeout: 1_000 })
    const settle = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
    socket.once('timeout', () => settle(false))
  })
}
