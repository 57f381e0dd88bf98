import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import type { HttpSettings } from '../../src/executors/http/http-executor.ts'
import { Jobs } from '../../src/jobs.ts'
import { Engine } from '../../src/node/engine.ts'
import { Runs } from '../../src/runs.ts'
import { ManualClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { pause } from '../../src/runtime/pause.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { Database } from '../../src/store/database.ts'
import { prepareSchema } from '../../src/store/prepare-schema.ts'
import { followManualTime, manualTime } from '../../src/testing/manual-time.sql.ts'
import { nextDueInstant } from '../../src/testing/next-due.sql.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'
import { START } from './kit.ts'

const SHARDS = 2
const PUBLIC_URL = 'http://belfry.example'
const VAULT_KEY = new Uint8Array(32).fill(7)
/** So long nothing may end before calls that wait for something in their node count as waiting for the clock. */
const QUIET_MS = 100
/** The same when all of them hang in a target: what the clock has just ended takes a moment to be gone. */
const HANGING_MS = 10
const LOOK_EVERY_MS = 2

/** Calls that have reached a target, by run and attempt: until it answers, nothing ends them but the clock. */
const arrived = new Map<string, ServerResponse>()
const isHanging = ({ id, attempt }: ActiveRun): boolean => {
  const response = arrived.get(`${id} ${attempt}`)
  return response !== undefined && !response.writableEnded && !response.destroyed
}

export interface Seen {
  at: number
  runId: string
  attempt: number
  callbackUrl: string
  path: string
}

type Answer = (response: ServerResponse, request: IncomingMessage, seen: Seen) => void

/** A target that remembers its calls and answers as it is told to. */
export async function startTarget(clock: { now(): number }, answer: Answer = ok) {
  const seen: Seen[] = []
  let active = 0
  const target = {
    url: '',
    seen,
    answer,
    most: 0,
    active: () => active,
    refuse: async () => {},
    accept: async () => {},
  }
  const server = createServer((request, response) => {
    request.resume()
    target.most = Math.max(target.most, ++active)
    response.on('close', () => active--)
    const call: Seen = {
      at: clock.now(),
      runId: String(request.headers['belfry-run-id']),
      attempt: Number(request.headers['belfry-attempt']),
      callbackUrl: String(request.headers['belfry-callback-url']),
      path: request.url ?? '',
    }
    seen.push(call)
    arrived.set(`${call.runId} ${call.attempt}`, response)
    target.answer(response, request, call)
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  target.url = `http://127.0.0.1:${port}`
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  target.refuse = close
  target.accept = () => listen(port)
  onTestFinished(close)
  return target
}

export const ok: Answer = (response) => response.writeHead(200).end('fine')
export const fail: Answer = (response) => response.writeHead(500).end('broken')
/** Takes the request and says nothing. */
export const hang: Answer = () => {}
export const willCallBack: Answer = (response) => response.writeHead(202, { 'belfry-callback': 'wait' }).end()

/** Nodes that perform HTTP calls in real time, and share a clock that is moved by hand. */
export async function startHttpNodes(options: { nodes?: number; http?: HttpSettings; leaseMs?: number } = {}) {
  const database = await createDatabase({ days: KIT_DAYS })
  onTestFinished(() => database.drop())
  const clock = new ManualClock(START)
  const start = (seed: number) => startNode({ schema: database.schema, seed, clock, ...options })
  const nodes = await Promise.all(Array.from({ length: options.nodes ?? 1 }, (_, i) => start(i + 1)))
  const pool = new pg.Pool({ ...inject('postgres'), options: `-c search_path=${database.schema}`, max: 4 })
  onTestFinished(() => pool.end())
  const query = async <Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> =>
    (await pool.query<Row>(text, values)).rows
  const [node] = nodes as [HttpNode]
  onTestFinished(() => arrived.clear())
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 2; quiet++) for (const one of nodes) if ((await one.step()) > 0) quiet = -1
  }
  /** Stops wherever something is due, or a little later so that there are fewer stops. */
  const pass = async (ms: number, grainMs = 0): Promise<void> => {
    const until = clock.now() + ms
    for (;;) {
      await settle()
      const now = clock.now()
      if (now >= until) return
      clock.advance(Math.min(until, Math.max(now + grainMs, await nextDueInstant(node.engine.db, now))) - now)
    }
  }
  return {
    clock,
    nodes,
    node,
    pool,
    query,
    settle,
    pass,
    startNode: start,
    jobs: new Jobs(node.engine),
    runs: new Runs(node.engine),
  }
}

export type HttpNode = Awaited<ReturnType<typeof startNode>>

async function startNode(options: {
  schema: string
  seed: number
  clock: ManualClock
  http?: HttpSettings
  leaseMs?: number
}) {
  const { schema, seed, clock, http = {}, leaseMs = 30_000 } = options
  const db = new Database({ connection: manualTime(inject('postgres'), clock), schema, logger: silentLogger })
  const { shards } = await prepareSchema(db, SHARDS, silentLogger)
  await followManualTime(db)
  const engine = new Engine({
    db,
    clock,
    random: seededRandom(seed),
    logger: silentLogger,
    shards,
    leaseMs,
    cancelGraceMs: 10_000,
    historyDays: 400,
    daysAhead: KIT_DAYS.ahead,
    vaultKey: VAULT_KEY,
    allowPrivateTargets: true,
    publicUrl: () => PUBLIC_URL,
    http,
  })
  await engine.partitioner.ensure()
  await engine.pulse.runOnce()
  await engine.httpQueues.runOnce()
  let isStopped = false
  /** As if the process had been killed: it does nothing any more, and gives nothing back. */
  const kill = async () => {
    if (isStopped) return
    isStopped = true
    await engine.http.close()
    await db.close()
  }
  const stop = async (graceMs = 0) => {
    if (isStopped) return
    isStopped = true
    await engine.stop(graceMs)
    await db.close()
  }
  onTestFinished(() => stop())
  const active = () => engine.handlers.pools.reduce((sum, pool) => sum + pool.active.size, 0)
  const areHanging = () => engine.handlers.pools.every((pool) => [...pool.active].every(isHanging))
  /** Calls take real time: ends when all have ended that can without the clock. */
  const rest = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    for (let quietMs = 0; quietMs < (areHanging() ? HANGING_MS : QUIET_MS) && active() > 0; ) {
      const before = active()
      await pause(LOOK_EVERY_MS)
      quietMs = active() === before ? quietMs + LOOK_EVERY_MS : 0
    }
    await engine.handlers.settled()
  }
  /** One round of everything; answers how much changed. */
  const step = async (): Promise<number> => {
    if (isStopped) return 0
    await rest()
    engine.pulse.sweepNext()
    await engine.pulse.runOnce()
    await engine.httpQueues.runOnce()
    await engine.http.circuits.runOnce()
    await engine.http.limits.runOnce()
    await engine.keeper.runOnce()
    while ((await engine.reader.runOnce()).waitMs === 0);
    let changed = (await engine.promoter.runOnce()).promoted + (await engine.waking.waker.runOnce()).woken
    changed += await engine.reaper.reap([0, 1], clock.now())
    for (const queueId of engine.handlers.queueIds) {
      const before = active()
      await engine.handlers.claimer(queueId)?.runOnce()
      await new Promise((resolve) => setImmediate(resolve))
      changed += Math.max(0, active() - before)
    }
    await rest()
    return changed
  }
  return { engine, db, step, rest, stop, kill, active }
}
