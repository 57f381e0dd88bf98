import type { ChildProcess } from 'node:child_process'

interface Handle {
  close(): void
}

/**
 * Closes what a process was handed and did not live to take. The cluster module keeps each connection open until the process
 * says that it has it, and forgets it if the process dies before: its client would wait for an answer for ever. Here the
 * client is cut off at once, and can ask another process.
 *
 * There is no event for a connection that is handed over, so the messages themselves are watched. A test kills processes
 * under load: it would tell if another version of Node.js spoke differently.
 */
export function closeConnectionsLeftBy(child: ChildProcess): void {
  const handed = new Map<number, Handle>()
  const send = child.send.bind(child) as (...values: unknown[]) => boolean
  child.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
    const { act, seq } = message as { act?: unknown; seq?: unknown }
    if (act === 'newconn' && typeof seq === 'number' && isHandle(handle)) handed.set(seq, handle)
    return send(message, handle, ...rest)
  }
  child.on('internalMessage', (message: unknown) => {
    const { ack } = (message ?? {}) as { ack?: unknown }
    if (typeof ack === 'number') handed.delete(ack)
  })
  // Not when the channel closes: it stays half open while something that was handed over has not been taken.
  child.once('exit', () => {
    for (const handle of handed.values()) handle.close()
    handed.clear()
  })
}

const isHandle = (value: unknown): value is Handle =>
  typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function'
