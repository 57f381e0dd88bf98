// Renews a worker's leases while its event loop is blocked: a thread of its own that reads their tokens from the shared
// board (lease-board.ts has the layout) and does nothing as long as the main thread beats. It runs as it stands here, from
// the sources and from a build alike, and therefore is plain JavaScript.
import { parentPort, workerData } from 'node:worker_threads'

const { memory, slotCount, leaseMs, workerId, url, headers } = workerData
const STOP = 0
const BEAT = 1
const CONTROL_BYTES = 16
const LENGTH_BYTES = 4
const TOKEN_BYTES = 192
const MAX_ITEMS = 10_000

const control = new Int32Array(memory, 0, 2)
const lengths = new Int32Array(memory, CONTROL_BYTES, slotCount)
const bytes = new Uint8Array(memory, CONTROL_BYTES + slotCount * LENGTH_BYTES)
const decoder = new TextDecoder()

let beat = Atomics.load(control, BEAT)
let beatAt = performance.now()
let renewedAt = Number.NEGATIVE_INFINITY

while (Atomics.load(control, STOP) === 0) {
  // There is nothing else to do in this thread: it sleeps here, and calls are awaited only while it stands in.
  Atomics.wait(control, STOP, 0, leaseMs / 12)
  const now = performance.now()
  const current = Atomics.load(control, BEAT)
  if (current !== beat) {
    beat = current
    beatAt = now
  } else if (now - beatAt >= leaseMs * 0.4 && now - renewedAt >= leaseMs / 3) {
    renewedAt = now
    if (!(await renew(tokens()))) renewedAt = Number.NEGATIVE_INFINITY
  }
}

function tokens() {
  const found = []
  for (let slot = 0; slot < slotCount; slot++) {
    const length = Atomics.load(lengths, slot)
    // A copy: text is not decoded from shared memory.
    if (length > 0) found.push(decoder.decode(bytes.slice(slot * TOKEN_BYTES, slot * TOKEN_BYTES + length)))
  }
  return found
}

/** Whether the server answered. What it said waits for the main thread. */
async function renew(held) {
  for (let i = 0; i < held.length; i += MAX_ITEMS) {
    const leases = held.slice(i, i + MAX_ITEMS).map((token) => ({ token }))
    const answer = (await call(leases)) ?? (await call(leases))
    if (answer === null) return false
    parentPort.postMessage(answer)
  }
  return true
}

/** Null: no answer. The second try has a connection of its own if the first one was closed meanwhile. */
async function call(leases) {
  try {
    const answer = await fetch(`${url}/v1/leases/heartbeat`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ workerId, leases }),
      signal: AbortSignal.timeout(Math.max(leaseMs / 3, 1_000)),
    })
    const text = await answer.text()
    return answer.ok ? JSON.parse(text) : null
  } catch {
    return null
  }
}
