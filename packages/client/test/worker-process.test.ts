import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { createRun, finished, startWorker, startWorkerServer, type WorkerServer } from './worker-kit.ts'

let server: WorkerServer
beforeAll(async () => {
  server = await startWorkerServer()
})
afterAll(() => server.stop())

interface Said {
  event: string
  [field: string]: unknown
}

/** A worker in a process of its own, which runs from the build. */
class WorkerProcess {
  readonly child: ChildProcess
  readonly said: Said[] = []
  readonly ended: Promise<unknown[]>
  #onSaid = () => {}

  constructor(options: {
    queue: string
    handler: 'blocks' | 'waits'
    concurrency?: number
    leaseMs?: number
    graceMs?: number
  }) {
    const build = inject('build')
    if ('problem' in build) throw new Error(`this test needs a build: ${build.problem}`)
    const about = { build: build.directory, url: server.url, key: server.adminKey, concurrency: 1, ...options }
    const script = join(import.meta.dirname, 'worker-process.mjs')
    this.child = spawn(process.execPath, [script, JSON.stringify(about)], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    onTestFinished(() => void this.child.kill('SIGKILL'))
    this.ended = once(this.child, 'exit')
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.said.push(JSON.parse(line) as Said)
      this.#onSaid()
    })
  }

  attempts(event: string): unknown[] {
    return this.said.filter((one) => one.event === event).map(({ attempt }) => attempt)
  }

  async hears(event: string): Promise<Said> {
    for (;;) {
      const found = this.said.find((one) => one.event === event)
      if (found) return found
      await new Promise<void>((resolve) => {
        this.#onSaid = resolve
      })
    }
  }
}

test('a handler that blocks its event loop for longer than a lease keeps it, and ends once', async () => {
  const { client } = server
  const child = new WorkerProcess({ queue: 'blocked', handler: 'blocks', leaseMs: 2_000 })
  const id = await createRun(client, { queue: 'blocked', payload: 5_000, retry: { maxAttempts: 3 } })
  const run = await finished(client, id)
  expect(run).toMatchObject({ status: 'succeeded', attempt: 1, result: { attempt: 1 } })
  expect(child.said.filter(({ event }) => event === 'started')).toHaveLength(1)
  expect(child.said.filter(({ event }) => event === 'warn' || event === 'lease lost')).toEqual([])
})

test('a worker that was stopped for longer than its lease learns that it is lost, and the other attempt stands', async () => {
  const { client } = server
  const child = new WorkerProcess({ queue: 'paused', handler: 'waits', leaseMs: 1_000 })
  const id = await createRun(client, { queue: 'paused', payload: 1, retry: { maxAttempts: 3 } })
  await child.hears('started')
  child.child.kill('SIGSTOP')
  startWorker(client, 'paused', { handler: (run) => ({ by: 'another', attempt: run.attempt }) })
  const run = await finished(client, id)
  expect(run).toMatchObject({ status: 'succeeded', attempt: 2, result: { by: 'another', attempt: 2 } })
  child.child.kill('SIGCONT')
  expect(await child.hears('aborted')).toMatchObject({ reason: 'lease_lost', attempt: 1 })
  expect(await child.hears('lease lost')).toMatchObject({ attempt: 1 })
  child.child.send('go on')
  child.child.kill('SIGTERM')
  await child.ended
  const after = await client.runs.get(id)
  expect(after).toMatchObject({ status: 'succeeded', attempt: 2, result: { by: 'another', attempt: 2 } })
  expect(after.attempts.map(({ status, failureClass }) => [status, failureClass])).toEqual([
    ['failed', 'lease_expired'],
    ['succeeded', null],
  ])
})

test('a lease that came while its worker was stopped, and has expired, is not started', async () => {
  const { client } = server
  // It has an open poll when it is stopped, which gets the second attempt.
  const child = new WorkerProcess({ queue: 'asleep', handler: 'waits', leaseMs: 1_000, concurrency: 2 })
  const id = await createRun(client, { queue: 'asleep', payload: 1, retry: { maxAttempts: 5 } })
  await child.hears('started')
  child.child.kill('SIGSTOP')
  await expect.poll(async () => (await client.runs.get(id)).attempt).toBe(2)
  startWorker(client, 'asleep', { handler: (run) => ({ attempt: run.attempt }) })
  expect(await finished(client, id)).toMatchObject({ status: 'succeeded', attempt: 3 })
  child.child.kill('SIGCONT')
  await expect.poll(() => child.attempts('lease lost').sort()).toEqual([1, 2])
  expect(child.attempts('started')).toEqual([1])
  expect(await client.runs.get(id)).toMatchObject({ status: 'succeeded', attempt: 3, result: { attempt: 3 } })
})

test('a worker that was stopped for less than its lease goes on as if nothing had been', async () => {
  const { client } = server
  const child = new WorkerProcess({ queue: 'dozed', handler: 'waits', leaseMs: 30_000 })
  const id = await createRun(client, { queue: 'dozed', payload: 1 })
  await child.hears('started')
  child.child.kill('SIGSTOP')
  child.child.kill('SIGCONT')
  child.child.send('go on')
  expect(await finished(client, id)).toMatchObject({ status: 'succeeded', attempt: 1 })
})

test('SIGTERM drains a worker, and its process ends by itself', async () => {
  const { client } = server
  const child = new WorkerProcess({ queue: 'ended', handler: 'waits', graceMs: 30_000 })
  const id = await createRun(client, { queue: 'ended', payload: 1 })
  await child.hears('started')
  const { id: workerId } = await child.hears('ready')
  child.child.kill('SIGTERM')
  await expect.poll(async () => (await client.workers.get(String(workerId))).status).toBe('draining')
  child.child.send('go on')
  const [code, killedBy] = await child.ended
  expect([code, killedBy]).toEqual([0, null])
  expect(child.said.at(-1)?.event).toBe('nothing left')
  expect(await client.runs.get(id)).toMatchObject({ status: 'succeeded', attempt: 1 })
  await expect(client.workers.get(String(workerId))).rejects.toMatchObject({ status: 404 })
})
