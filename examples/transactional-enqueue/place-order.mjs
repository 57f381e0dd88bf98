// An order and the job that confirms it, in one transaction: see README.md beside it.
import { Belfry } from '@belfry/engine'
import pg from 'pg'

const [customer = 'ada', how = 'commit'] = process.argv.slice(2)
const belfry = await Belfry.start({ database: process.env.DATABASE_URL })
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
await pool.query('create table if not exists orders (id bigserial primary key, customer text not null)')

const tx = await pool.connect()
try {
  await tx.query('begin')
  const { rows } = await tx.query('insert into orders (customer) values ($1) returning id', [customer])
  const order = rows[0].id
  await belfry.jobs.create({ queue: 'confirmations', payload: { order, customer } }, { tx })
  if (how === 'fail') throw new Error('the payment was refused')
  await tx.query('commit')
  console.log(`order ${order} is placed, and will be confirmed`)
} catch (error) {
  await tx.query('rollback')
  console.log(`no order and no job: ${error.message}`)
} finally {
  tx.release()
}

await pool.end()
await belfry.stop()
