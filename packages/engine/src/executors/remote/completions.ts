import { type Finish, lookAtAttempts } from '../../attempts/finish.sql.ts'
import type { Finisher, FinishOutcome } from '../../attempts/finisher.ts'
import type { Definition } from '../../job/definition.ts'
import { OUTCOME } from '../../job/states.ts'
import type { Definitions } from '../../leases/definitions.sql.ts'
import type { Fence, Lease } from '../../leases/lease.ts'
import { leaseKey, readLeases } from '../../leases/read-leases.sql.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import type { Vital } from '../../store/database.ts'
import type { GiveBack } from '../give-back.ts'
import { resultJson } from '../handlers/judge.ts'
import { releaseOf } from '../startable.ts'
import type { HeldLeases } from './held-leases.ts'
import { type Completion, judgeRemote } from './judge-remote.ts'

export interface CompletionsDeps {
  db: Vital
  clock: Clock
  random: Random
  finisher: Finisher
  definitions: Definitions
  wakeups: Wakeups
  held: HeldLeases
  giveBack: GiveBack
}

/** How an attempt shall end: as its worker says, or given back; `begun`: false if it never was. */
export type Said = Completion | { status: 'released'; begun?: false }

export interface Ending {
  fence: Fence
  said: Said
}

export interface Answer {
  outcome: FinishOutcome
  note?: string
}

interface Known {
  lease: Lease
  /** It may have left a checkpoint or its progress, which go with its end. */
  hasLeft: boolean
}

const OUTCOME_OF = {
  succeeded: OUTCOME.succeeded,
  failed: OUTCOME.failed,
  snoozed: OUTCOME.snoozed,
  canceled: OUTCOME.canceled,
  released: OUTCOME.released,
} as const
const NO_RESULT = 'the result is not kept: it takes more than 64 KiB as JSON, or holds a NUL'

/**
 * Ends attempts as their workers say. What this node has given out it knows; the rest is read from the tables. A completion
 * that matches nothing live is looked up in history by its fence: having said the same before is as good as saying it now.
 */
export class Completions {
  readonly #deps: CompletionsDeps

  constructor(deps: CompletionsDeps) {
    this.#deps = deps
  }

  /** One answer per ending, in their order; each is of a lease of its own. */
  async end(endings: readonly Ending[]): Promise<Answer[]> {
    const { held, finisher } = this.#deps
    finisher.mustNotBeBehind()
    const own = endings.map(({ fence }) => held.take(fence))
    const strange = endings.filter((_, i) => own[i] === null)
    const [live, known] = strange.length === 0 ? NOTHING : await this.#find(strange)
    return this.#finish(endings, (i, { fence }) => {
      const lease = live.get(leaseKey(fence))
      return own[i] ?? (lease === undefined ? known.has(leaseKey(fence)) : { lease, hasLeft: true })
    })
  }

  /** Those of other processes' leases that are live, and those that history knows to have ended like this. */
  async #find(strange: readonly Ending[]): Promise<[Map<string, Lease>, Set<string>]> {
    const { db, definitions } = this.#deps
    const live = await readLeases(
      db,
      strange.map(({ fence }) => fence),
    )
    const toJudge = strange.flatMap(({ fence, said }) =>
      said.status === 'failed' ? (live.get(leaseKey(fence)) ?? []) : [],
    )
    const found = toJudge.length === 0 ? new Map<string, string>() : await definitions.of(toJudge)
    for (const lease of toJudge) lease.definition = found.get(lease.jobId) ?? null
    const over = strange.filter(({ fence }) => !live.has(leaseKey(fence)))
    if (over.length === 0) return [live, new Set()]
    const known = await lookAtAttempts(db, over.map(asIfNow))
    return [live, new Set([...known].map(({ fence }) => leaseKey(fence)))]
  }

  #finish(endings: readonly Ending[], find: (i: number, ending: Ending) => Known | boolean): Promise<Answer[]> {
    const { finisher, giveBack, wakeups } = this.#deps
    const answers: Answer[] = new Array(endings.length)
    return new Promise((resolve) => {
      let open = 1
      const settled = () => {
        if (--open === 0) resolve(answers)
      }
      endings.forEach((ending, i) => {
        const found = find(i, ending)
        if (typeof found === 'boolean') {
          // What was given back leaves nothing that a repeated call could be answered by.
          answers[i] = { outcome: found || neverBegan(ending.said) ? 'ok' : 'lease_lost' }
          return
        }
        if (neverBegan(ending.said)) {
          open++
          giveBack.push(found.lease, (isBack) => {
            answers[i] = { outcome: isBack ? 'ok' : 'lease_lost' }
            settled()
          })
          return
        }
        const { finish, note } = this.#judge(found, ending.said)
        open++
        finisher.finish(finish, (outcome) => {
          if (outcome === 'ok' && finish.kind === 'goes_on') wakeups.waiting(finish.fence.shard, finish.nextDueAt)
          answers[i] = note === undefined || outcome !== 'ok' ? { outcome } : { outcome, note }
          settled()
        })
      })
      settled()
    })
  }

  #judge({ lease, hasLeft }: Known, said: Said): { finish: Finish; note?: string } {
    const { clock, random } = this.#deps
    const now = clock.now()
    if (said.status === 'released') return { finish: releaseOf(lease, now) }
    const result = resultJson(said.result)
    const startedAt = said.durationMs === undefined ? lease.leasedAt : Math.max(lease.leasedAt, now - said.durationMs)
    const run = { lease, startedAt, hasLeft, definition: EMPTY }
    // Only a failure asks for the definition: for how it is tried again.
    if (said.status === 'failed' && lease.definition !== null)
      run.definition = JSON.parse(lease.definition) as Definition
    const finish = judgeRemote(run, said, result, now, random)
    return result === null && said.result !== undefined ? { finish, note: NO_RESULT } : { finish }
  }
}

const neverBegan = (said: Said): boolean => said.status === 'released' && said.begun === false

const EMPTY: Definition = { queue: 'default' }
const NOTHING: [Map<string, Lease>, Set<string>] = [new Map(), new Set()]

/** For looking it up in history, where only the fence and the outcome count. */
const asIfNow = ({ fence, said }: Ending): Finish => ({
  kind: 'ended',
  fence,
  startedAt: null,
  finishedAt: 0,
  outcome: OUTCOME_OF[said.status],
  failureClass: null,
  statusCode: null,
  error: null,
  result: null,
})
