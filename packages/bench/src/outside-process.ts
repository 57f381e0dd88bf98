import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Ask, Told } from './outside.ts'

export interface Outside {
  ask<Answer extends Told>(ask: Ask): Promise<Answer>
  end(): void
}

/** Starts the process of targets and callers; it ends with this one. */
export function startOutside(): Outside {
  const child = fork(fileURLToPath(new URL('./outside.js', import.meta.url)), { stdio: 'inherit' })
  const waiting = new Map<number, { resolve(told: Told): void; reject(error: Error): void }>()
  let next = 0
  child.on('message', ({ id, told }: { id: number; told: Told }) => {
    const asked = waiting.get(id)
    waiting.delete(id)
    if ('error' in told) asked?.reject(new Error(told.error))
    else asked?.resolve(told)
  })
  child.on('exit', (code) => {
    for (const asked of waiting.values()) asked.reject(new Error(`the process outside ended with ${code}`))
  })
  return {
    ask: <Answer extends Told>(ask: Ask) =>
      new Promise<Answer>((resolve, reject) => {
        waiting.set(next, { resolve: resolve as (told: Told) => void, reject })
        child.send({ id: next++, ask })
      }),
    end: () => child.disconnect(),
  }
}
