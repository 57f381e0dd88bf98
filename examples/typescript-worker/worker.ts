import { BelfryClient } from '@belfry/client'
import { Worker } from '@belfry/client/worker'

interface Mail {
  to: string[]
}

const client = new BelfryClient({
  url: process.env.BELFRY_URL ?? 'http://127.0.0.1:8080',
  key: process.env.BELFRY_API_KEY ?? '',
})

const worker = new Worker({
  client,
  queues: {
    emails: {
      concurrency: 20,
      handler: async (run) => {
        const { to } = run.payload as Mail
        // Where an earlier attempt that died had got to.
        const begunAt = Number((await run.checkpoint()) ?? 0)
        for (const [number, address] of to.entries()) {
          if (number < begunAt) continue
          await send(address, run.signal)
          run.log(`sent to ${address}`)
          await run.checkpoint(number + 1)
          await run.progress((number + 1) / to.length)
        }
        return { sent: to.length - begunAt }
      },
    },
  },
})

worker.start()
console.log('working on emails; Ctrl-C or SIGTERM drains')

/** Stands for a mail server. The signal ends it when the run is canceled or its lease is lost. */
async function send(address: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  console.log(`to ${address}`)
}
