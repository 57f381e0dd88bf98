import { expect, test } from 'vitest'
import { silentLogger } from '../../src/runtime/logger.ts'
import type { PulseAnswer } from '../../src/shards/pulse.sql.ts'
import { Pulse } from '../../src/shards/pulse.ts'
import { MINUTE, type Node, setup } from './setup.ts'
import { workerOf } from './worker.ts'

/** The pulse of another node, which says what it would tell the other loops. */
function pulseOf({ db, clock }: Node, id: string) {
  const answers: PulseAnswer[] = []
  const pulse = new Pulse({
    ...{ db: db.vital, clock, logger: silentLogger, shards: 2, ownTime: true },
    node: { id, shard: 0, roles: ['promoter'] },
    address: () => null,
    timersReadUntil: () => Number.NEGATIVE_INFINITY,
    queueIds: () => [],
    beforeAsking: () => {},
    charges: () => null,
    onOwners: () => {},
    onAnswer: (answer) => answers.push(answer),
    onSchema: () => {},
  })
  return { pulse, answers }
}

test('after an outage no node reaps before it can know of the grace, whichever pulses first', async () => {
  const t = await setup()
  const node = await t.startNode()
  const [first, second] = ['019b76da-a800-7000-8000-00000000000a', '019b76da-a800-7000-8000-00000000000b']
  const [one, other] = [pulseOf(node, first), pulseOf(node, second)]
  await node.jobs.create({ queue: 'work' })
  await workerOf(node).lease()
  for (const { pulse } of [one, other]) for (let i = 0; i < 2; i++) await pulse.runOnce()
  node.clock.advance(MINUTE)
  // The first has pulsed, and its grant is not there yet.
  await one.pulse.runOnce()
  await t.query(`delete from meta where key = 'grace_until'`)
  await other.pulse.runOnce()
  expect(other.answers.at(-1)).toMatchObject({ hasExpired: false, graceUntil: null })
  // A second later what the other one knows is what the database says.
  node.clock.advance(1_000)
  await other.pulse.runOnce()
  expect(other.answers.at(-1)).toMatchObject({ hasExpired: true })
})
