// An HTTP target that has its effect once, however often it is called: see README.md beside it.
import { createOnceTable, expressReceiver, fail, once } from '@belfry/client/receiver'
import express from 'express'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
await pool.query('create table if not exists invoices (id bigserial primary key, customer text not null, run_id text)')
await createOnceTable(pool)

const app = express()

app.post(
  '/invoices',
  // The signature is over the bytes as they came, so nothing may parse them before.
  express.raw({ type: '*/*', limit: '1mb' }),
  expressReceiver({ secret: process.env.BELFRY_SECRET, onError: (error) => console.error(error) }, async (call) => {
    const { customer } = call.json()
    if (typeof customer !== 'string') return fail('an invoice needs a customer')
    const tx = await pool.connect()
    try {
      await tx.query('begin')
      const { alreadyDone, result } = await once(tx, call.runId, async () => {
        const { rows } = await tx.query('insert into invoices (customer, run_id) values ($1, $2) returning id', [
          customer,
          call.runId,
        ])
        return { invoice: rows[0].id }
      })
      await tx.query('commit')
      console.log(`${call.runId} attempt ${call.attempt}: ${alreadyDone ? 'was done already' : 'done'}`)
      return result
    } catch (error) {
      await tx.query('rollback')
      throw error
    } finally {
      tx.release()
    }
  }),
)

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`receiving on http://127.0.0.1:${server.address().port}/invoices`)
})
process.once('SIGTERM', () => server.close(() => pool.end()))
