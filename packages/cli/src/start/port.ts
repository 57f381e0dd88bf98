import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { UsageError } from '../usage-error.ts'

/** Says what to do about a port that cannot be had; leaves other errors as they are. */
export function portFailure(port: number, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return new UsageError(`port ${port} is used by another program; set PORT to another one (0 picks a free port)`)
  if (code === 'EACCES')
    return new UsageError(`port ${port} is not allowed for this user; set PORT to one from 1024 up`)
  return error
}

/**
 * The port that several processes will share, tried before any of them is started. 0 becomes a number here: processes
 * that are started later must ask for the same one.
 */
export async function choosePort(port: number): Promise<number> {
  const probe = createServer()
  try {
    probe.listen(port)
    await once(probe, 'listening')
    return (probe.address() as AddressInfo).port
  } catch (error) {
    throw portFailure(port, error)
  } finally {
    if (probe.listening) {
      probe.close()
      await once(probe, 'close')
    }
  }
}
