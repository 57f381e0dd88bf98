import type { Run } from '../src/worker/index.ts'

const circle: Record<string, unknown> = {}
circle.self = circle

/** Everything a handler can do, by name. It does not know whether it runs in the library or in a worker. */
export const deeds: Record<string, (run: Run) => unknown> = {
  returns: (run) => ({ payload: run.payload, labels: run.labels, attempt: run.attempt }),
  'returns nothing': () => {},
  'returns what is no JSON': () => circle,
  'returns a function': () => () => 1,
  'returns too much': () => 'x'.repeat(70_000),
  'returns null': () => null,
  throws: () => {
    throw new TypeError('no such thing')
  },
  'throws without a message': () => {
    throw new RangeError()
  },
  'throws text': () => {
    throw 'just text'
  },
  'throws an object': () => {
    throw { code: 7 }
  },
  'rejects later': async () => {
    await new Promise((resolve) => setImmediate(resolve))
    throw new Error('later')
  },
  'throws until the third attempt': (run) => {
    if (run.failures < 2) throw run.retryIn('1ms', `failure ${run.failures + 1}`)
    return { failures: run.failures, attempt: run.attempt }
  },
  'fails for good': (run) => run.fail('never'),
  'cancels itself': (run) => {
    throw run.cancel('not needed')
  },
  'snoozes twice': (run) =>
    run.attempt <= 2 ? run.snooze('PT0.001S') : { attempt: run.attempt, failures: run.failures },
  'leaves a checkpoint': async (run) => {
    const before = await run.checkpoint()
    if (run.attempt === 2) return { before }
    await run.checkpoint({ page: 3 })
    throw run.retryIn('1ms', `had ${String(before)}`)
  },
  'tells how far it is': async (run) => {
    await run.progress(0.25, 'a quarter')
    await run.progress(1)
    await run.heartbeat()
    return 'done'
  },
  logs: (run) => {
    run.log('first')
    run.log('second', 'error')
    run.log('a\0b', 'warn')
  },
  'stops when it is told to': (run) =>
    new Promise((_resolve, reject) => {
      run.signal.addEventListener('abort', () => reject(new Error(`stopped: ${run.signal.reason}`)))
    }),
  'says a wrong delay': (run) => run.snooze('soon'),
}

export const handler = (run: Run): unknown => (deeds[String(run.payload)] as (run: Run) => unknown)(run)
