import { expect, test } from 'vitest'
import { startHttpNodes, startTarget } from './http-kit.ts'

test('an HTTP job without a queue is performed by a node, and its attempt tells what the target answered', async () => {
  const t = await startHttpNodes()
  const target = await startTarget(t.clock)
  const { jobId } = await t.jobs.create({ http: { url: `${target.url}/hook` }, payload: { a: 1 } } as never)
  await t.settle()
  expect(target.seen).toHaveLength(1)
  expect(await t.jobs.get(jobId)).toMatchObject({ status: 'succeeded' })
  const [attempt] = await t.query('select * from attempts')
  expect(attempt).toMatchObject({ status_code: 200, number: 1, counted: true, final: true, response: { body: 'fine' } })
})
