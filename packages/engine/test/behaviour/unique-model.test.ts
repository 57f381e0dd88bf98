import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { startKit } from './kit.ts'

type Unique = NonNullable<JobInput['unique']>

const WHILE = ['queued', 'active', 'both'] as const
const ON_CONFLICT = ['keep', 'replace', 'reject'] as const
const STEPS = 100

/** What anybody may know of a job: written from the documentation, not from the code. */
interface Known {
  jobId: string
  key: string
  state: 'queued' | 'active' | 'ended' | 'dead'
  payload: number
  unique: Unique
}

const counts = ({ state }: Known, { while: wanted = 'both' }: Unique): boolean =>
  wanted === 'both' ? state === 'queued' || state === 'active' : state === wanted

test.each([1, 2, 3])(
  'whatever happens to jobs with unique keys, creates are answered by the rule (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random.float() * items.length)] as Item
    const { kit, query } = await startKit()
    const jobs: Known[] = []
    const ends = new Map<string, (how: 'well' | 'ill') => void>()
    const performed: [string, unknown][] = []
    await kit.handle('work', (run) => {
      performed.push([run.jobId, run.payload])
      return new Promise<void>((resolve, reject) => {
        ends.set(run.jobId, (how) => (how === 'well' ? resolve() : reject(new Error('no'))))
      })
    })
    const inState = (state: Known['state']) => jobs.filter((job) => job.state === state)

    const steps: Record<string, () => Promise<void>> = {
      create: async () => {
        const unique: Unique = { key: pick(['a', 'b']), while: pick(WHILE), onConflict: pick(ON_CONFLICT) }
        const payload = jobs.length * 1_000 + performed.length
        const input = { queue: 'work', payload, unique, retry: { maxAttempts: 1 }, ...pick([{}, { delay: '1h' }]) }
        const counting = jobs.filter((job) => job.key === unique.key && counts(job, unique))
        const unstarted = counting.filter(({ state }) => state === 'queued')
        const answer = await kit.jobs.create(input).then(
          (created) => created,
          (error: { code: string }) => error.code,
        )
        if (counting.length === 0) {
          expect(answer).toMatchObject({ deduplicated: false })
          const { jobId } = answer as { jobId: string }
          jobs.push({ jobId, key: unique.key, state: 'queued', payload, unique })
        } else if (unique.onConflict === 'keep') {
          expect(counting.map(({ jobId }) => jobId)).toContain((answer as { jobId: string }).jobId)
          expect(answer).toMatchObject({ deduplicated: true })
        } else if (unique.onConflict === 'reject' || unstarted.length === 0) {
          expect(answer).toBe('unique_conflict')
        } else {
          expect(answer).toMatchObject({ deduplicated: true, replaced: true })
          const replaced = unstarted.find(({ jobId }) => jobId === (answer as { jobId: string }).jobId)
          expect(replaced).toBeDefined()
          Object.assign(replaced as Known, { payload, unique })
        }
      },
      start: async () => {
        const before = performed.length
        await kit.readTimers()
        await kit.promote()
        await kit.pulse()
        await kit.claim('work')
        for (const [jobId, payload] of performed.slice(before)) {
          const job = jobs.find((one) => one.jobId === jobId) as Known
          expect(payload).toBe(job.payload)
          job.state = 'active'
        }
      },
      finish: async () => {
        // One that was opened again has no end before it is started again.
        const job = inState('active').find(({ jobId }) => ends.has(jobId))
        if (job === undefined) return
        const how = pick(['well', 'ill'] as const)
        ends.get(job.jobId)?.(how)
        ends.delete(job.jobId)
        const alive = () => query('select from runs where job_id = $1', [job.jobId])
        await expect.poll(alive, { interval: 2 }).toEqual([])
        job.state = how === 'well' ? 'ended' : 'dead'
      },
      cancel: async () => {
        const job = inState('queued')[0]
        if (job === undefined) return
        await kit.jobs.cancel(job.jobId)
        job.state = 'ended'
      },
      retry: async () => {
        const dead = inState('dead')
        if (dead.length === 0) return
        const job = pick(dead)
        const [run] = (await kit.runs.list({ jobId: job.jobId })).items
        const counting = jobs.filter((one) => one !== job && one.key === job.key && counts(one, job.unique))
        const retried = await kit.runs.retry(run?.id as string).then(
          () => 'retried',
          (error: { code: string }) => error.code,
        )
        expect(retried).toBe(counting.length === 0 ? 'retried' : 'unique_conflict')
        // Its attempts go on: it has started before.
        if (retried === 'retried') job.state = 'active'
      },
    }

    for (let i = 0; i < STEPS; i++) await pick([steps.create, steps.create, ...Object.values(steps)])?.()
    const alive = await query<{ job_id: string }>('select job_id from runs union select job_id from timers')
    const expected = [...inState('queued'), ...inState('active')].map(({ jobId }) => jobId)
    expect(alive.map(({ job_id }) => job_id).sort()).toEqual(expected.sort())
  },
)
