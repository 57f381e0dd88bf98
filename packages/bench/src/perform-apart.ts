import { type ChildProcess, fork } from 'node:child_process'
import type { Program } from './programs.ts'
import type { Measurement, Setting } from './workload.ts'

export interface Order {
  workload: string
  subject: string
  setting: Setting
}

export type Answer =
  | { kind: 'measured'; measurements: Measurement[] }
  | { kind: 'skipped'; reason: string }
  | { kind: 'failed'; reason: string }

const DEADLINE_MS = 900_000
/** As `npm start` has it; peers get the same. */
export const EXEC_ARGV = ['--max-semi-space-size=64']

/** Performs one order in a process of its own, so that no subject runs on the heap or the compiled code of another. */
export function performApart(order: Order, program: Program, signal: AbortSignal): Promise<Answer> {
  const child = fork(program.child, { execArgv: EXEC_ARGV, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const end = () => child.kill('SIGKILL')
  const deadline = setTimeout(end, DEADLINE_MS)
  signal.addEventListener('abort', end)
  child.send(order)
  return answerOf(child).finally(() => {
    clearTimeout(deadline)
    signal.removeEventListener('abort', end)
  })
}

function answerOf(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve) => {
    let answer: Answer | undefined
    child.once('message', (message: Answer) => {
      answer = message
    })
    child.once('exit', (code, signal) => {
      resolve(answer ?? { kind: 'failed', reason: `the process ended without an answer (${signal ?? `code ${code}`})` })
    })
  })
}
