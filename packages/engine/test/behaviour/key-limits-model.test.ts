import { expect, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import { startKit } from './kit.ts'

const STEPS = 120
const KEYS = ['a', 'b', 'c'] as const

/** What ends, fails, comes and changes in whatever order: after each step the limits hold, and in the end all is done. */
test.each([1, 2, 3])(
  'whatever happens in whatever order, limits hold and nothing is left behind (seed %i)',
  async (seed) => {
    const { kit, query } = await startKit()
    const random = seededRandom(seed)
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random.float() * items.length)] as Item
    const open: { key: string; nominalAt: number; resolve(): void; reject(error: Error): void }[] = []
    const limits = new Map<string, number>([
      ['a', 1],
      ['b', 2],
      ['c', 4],
    ])
    let [made, done] = [0, 0]
    const serial: number[] = []
    await kit.handle('mail', (run) => {
      const { key } = run.payload as { key: string }
      const nominalAt = run.nominalAt.getTime()
      if (key === 'a') serial.push(nominalAt)
      return new Promise<void>((resolve, reject) => open.push({ key, nominalAt, resolve, reject }))
    })
    const retry = { maxAttempts: 50, backoff: { type: 'fixed', initial: '2s', jitter: 0 } } as const
    const create = async () => {
      const key = pick(KEYS)
      const concurrency = { key, limit: limits.get(key) as number }
      await kit.jobs.create({ queue: 'mail', payload: { key }, retry, concurrency })
      made++
    }
    const end = (error?: Error) => {
      const [run] = open.splice(Math.floor(random.float() * open.length), 1)
      if (error) run?.reject(error)
      else if (run) {
        run.resolve()
        done++
      }
    }
    const leased = () =>
      query<{ name: string; n: number; max_running: number }>(
        `select l.name, l.max_running, count(*)::int as n from runs r join limits l on l.shard = r.shard and l.key = r.limit_key
       where r.state = 1 group by 1, 2`,
      )
    for (let step = 0; step < STEPS; step++) {
      kit.clock.advance(100)
      const dice = random.float()
      if (dice < 0.45) await create()
      else if (dice < 0.75) end()
      else if (dice < 0.85) end(new Error('again'))
      else if (dice < 0.9) limits.set('c', 1 + Math.floor(random.float() * 5))
      else kit.clock.advance(2_000)
      const before = new Map((await leased()).map(({ name, n }) => [name, n]))
      await kit.settle({ running: 'leave' })
      for (const { name, n, max_running } of await leased()) {
        // One that was lowered may still be over, and gets no more.
        expect(n, `${name} in step ${step}`).toBeLessThanOrEqual(Math.max(max_running, before.get(name) ?? 0))
      }
    }
    while (done < made) {
      while (open.length > 0) end()
      kit.clock.advance(2_100)
      await kit.settle({ running: 'leave' })
    }
    expect(await query('select from runs')).toEqual([])
    // A limit of 1 is served in order, and whoever has to be tried again keeps his place.
    expect(serial).toEqual([...serial].sort((a, b) => a - b))
  },
)
