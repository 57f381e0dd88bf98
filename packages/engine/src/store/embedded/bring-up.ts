import { readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BelfryError } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/pause.ts'
import { type EmbeddedConnection, waitForAnswer } from './answering.ts'
import { findBinaries } from './binaries.ts'
import { type Cluster, ensureCluster, ROLE, writeSettings } from './cluster.ts'
import { type Endpoint, openEndpoint, readEndpoint, SOCKET_PORT } from './endpoint.ts'
import { embeddedFailure } from './failure.ts'
import { findPostmaster, launch, removeMisleadingPidFile, stopPostmaster } from './postmaster.ts'
import { canReach, chooseServerUser } from './server-user.ts'
import { lookAtMachine, type ServerSettings, settingsFor } from './settings.ts'

export interface BringUpOptions {
  dataDir: string
  settings: ServerSettings
  /** A restart never makes a cluster: if the data is gone, an empty database in its place would hide the loss. */
  cluster: 'made if missing' | 'expected'
  clock: Clock
  logger: Logger
}

/** After kill -9 of a server its orphaned backends take a moment to notice; until then PostgreSQL refuses to start. */
const LEFTOVER_PATIENCE_MS = 60_000
const MOST_ROUNDS = 1_000
const SMALL_MEMORY_BYTES = 1024 * 1024 * 1024

const endpointFileOf = (dataDir: string) => join(dataDir, 'endpoint.json')
export const logFileOf = (dataDir: string) => join(dataDir, 'postgres.log')

/** Joins the server that runs on the data directory, whoever started it, or starts one. Called under the lock. */
export async function bringUp(options: BringUpOptions): Promise<{ cluster: Cluster; connection: EmbeddedConnection }> {
  const { dataDir, clock, logger } = options
  const cluster = await openCluster(options)
  const startedAt = clock.now()
  let memoryBytes = Number.POSITIVE_INFINITY

  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (findPostmaster(cluster.directory)) {
      const connection = await joinRunning(cluster, options)
      if (connection) return { cluster, connection }
      continue
    }

    removeMisleadingPidFile(cluster.directory)
    const endpoint = await openEndpoint(endpointFileOf(dataDir), cluster.user)
    const connection = await connectionTo(endpoint, cluster)
    const machine = lookAtMachine(dataDir)
    machine.memoryBytes = Math.min(machine.memoryBytes, memoryBytes)
    await writeSettings(cluster, { ...settingsFor(machine), ...options.settings })
    const { ended } = await launch(cluster, endpoint, logFileOf(dataDir))
    let said: string | null = null
    void ended.then((text) => {
      said = text
    })

    const outcome = await waitForAnswer(connection, cluster.directory, { clock, logger, hasEnded: () => said !== null })
    if (outcome === 'answers') return { cluster, connection }
    if (outcome === 'unreachable') await stopPostmaster(cluster, clock, logger)
    const last = await ended
    // Of two servers started at once (one by a Belfry that was killed meanwhile) PostgreSQL lets one live: join it.
    if (findPostmaster(cluster.directory)) continue

    if (/shared memory block .* is still in use/.test(last) && clock.now() - startedAt < LEFTOVER_PATIENCE_MS) {
      await pause(100)
    } else if (/could not map anonymous shared memory/.test(last) && memoryBytes > SMALL_MEMORY_BYTES) {
      logger.warn('there is little memory for the embedded database; it starts with its smallest settings')
      memoryBytes = SMALL_MEMORY_BYTES
    } else if (/Address already in use/.test(last) && round < 10) {
      await rm(endpointFileOf(dataDir), { force: true })
    } else {
      throw embeddedFailure('the embedded database cannot be started', dataDir, last)
    }
  }
  throw new BelfryError(
    'embedded_database',
    `the embedded database in ${dataDir} keeps ending as soon as it is started`,
  )
}

async function openCluster({ dataDir, cluster: expectation, logger }: BringUpOptions): Promise<Cluster> {
  const directory = join(dataDir, 'postgres')
  const user = chooseServerUser(directory, dataDir)
  if (user?.switched && process.platform !== 'linux' && !canReach(user, dataDir)) {
    throw new BelfryError(
      'embedded_database',
      `PostgreSQL does not run as root, and the user it runs as (uid ${user.uid}) cannot reach ${dataDir}; ` +
        'choose a data directory outside of root’s own (BELFRY_DATA_DIR), or start Belfry as an ordinary user',
    )
  }
  const cluster = {
    directory,
    passwordFile: join(dataDir, 'password'),
    binaries: await findBinaries(user, logger),
    user,
  }
  await ensureCluster(cluster, dataDir, expectation)
  return cluster
}

/** Takes part in a running server. One that cannot be reached (its socket is gone) is stopped, to be started anew. */
async function joinRunning(
  cluster: Cluster,
  { dataDir, clock, logger }: BringUpOptions,
): Promise<EmbeddedConnection | null> {
  const running = findPostmaster(cluster.directory)
  if (!running) return null
  const endpoint = await readEndpoint(endpointFileOf(dataDir))
  const connection = endpoint && (await connectionTo(endpoint, cluster))
  const hasEnded = () => findPostmaster(cluster.directory)?.pid !== running.pid
  const outcome = connection
    ? await waitForAnswer(connection, cluster.directory, { clock, logger, hasEnded })
    : 'unreachable'
  if (outcome === 'answers') return connection
  if (outcome === 'unreachable') {
    logger.warn('the embedded database runs but cannot be reached; it is started again', { pid: running.pid })
    await stopPostmaster(cluster, clock, logger)
  }
  return null
}

async function connectionTo(endpoint: Endpoint, cluster: Cluster): Promise<EmbeddedConnection> {
  const common = { user: ROLE, database: 'belfry' }
  if (endpoint.kind === 'socket') return { host: endpoint.directory, port: SOCKET_PORT, ...common }
  return {
    host: '127.0.0.1',
    port: endpoint.port,
    ...common,
    password: (await readFile(cluster.passwordFile, 'utf8')).trim(),
  }
}

/** What a clean stop leaves behind: nothing outside of the data directory. */
export async function closeEndpoint(dataDir: string): Promise<void> {
  const endpoint = await readEndpoint(endpointFileOf(dataDir))
  await rm(endpointFileOf(dataDir), { force: true })
  if (
    endpoint?.kind === 'socket' &&
    /^belfry-/.test(endpoint.directory.slice(dirname(endpoint.directory).length + 1))
  ) {
    await rm(endpoint.directory, { recursive: true, force: true })
  }
}
