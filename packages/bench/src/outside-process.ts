import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Asked, Reply } from './apart.ts'
import type { DispatcherAsk, DispatcherTold } from './dispatcher-side.ts'
import type { Ask, Told } from './outside.ts'
import { EXEC_ARGV } from './perform-apart.ts'
import type { WorkerAsk, WorkerTold } from './worker-side.ts'

export interface Apart<Ask, Told> {
  ask<Answer extends Told>(ask: Ask): Promise<Answer>
  end(): void
}

/** Starts the process of targets and callers; it ends with this one. */
export function startOutside(): Apart<Ask, Told> {
  return startApart('./outside.js')
}

/** Starts the process of workers; it ends with this one. */
export function startWorkerSide(): Apart<WorkerAsk, WorkerTold> {
  return startApart('./worker-side.js')
}

/** Starts a process that performs calls; it ends with this one. */
export function startDispatcherSide(): Apart<DispatcherAsk, DispatcherTold> {
  return startApart('./dispatcher-side.js', EXEC_ARGV)
}

function startApart<Ask, Told>(file: string, execArgv: string[] = []): Apart<Ask, Told> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { stdio: 'inherit', execArgv })
  const waiting = new Map<number, { resolve(told: Told): void; reject(error: Error): void }>()
  let next = 0
  child.on('message', (reply: Reply<Told>) => {
    const asked = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('error' in reply) asked?.reject(new Error(reply.error))
    else asked?.resolve(reply.told)
  })
  child.on('exit', (code) => {
    for (const asked of waiting.values()) asked.reject(new Error(`${file} ended with ${code}`))
  })
  return {
    ask: <Answer extends Told>(ask: Ask) =>
      new Promise<Answer>((resolve, reject) => {
        waiting.set(next, { resolve: resolve as (told: Told) => void, reject })
        const asked: Asked<Ask> = { id: next++, ask }
        child.send(asked)
      }),
    end: () => child.disconnect(),
  }
}
