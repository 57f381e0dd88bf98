import type { Outcome, RunState } from './states.ts'

/**
 * Every move that a run can make: what is not in this list must not happen, whatever crashes in between. The tests enforce it,
 * and docs/internals/states.md is generated from it.
 */

/** `absent`: there is no such run yet. `finished`: it has left `runs`, and its last attempt stands in history. */
export type Place = 'absent' | RunState | 'finished'

export type Verb =
  | 'create'
  | 'promote'
  | 'trigger'
  | 'backfill'
  | 'deliver'
  | 'claim'
  | 'renew'
  | 'finish'
  | 'release'
  | 'give_back'
  | 'reap'
  | 'wake'
  | 'supersede'
  | 'take_back'
  | 'cancel'
  | 'purge'
  | 'expire'
  | 'redrive'

export interface Transition {
  verb: Verb
  from: readonly Place[]
  to: Place
  when: string
  /** The outcomes that the attempt, or the run that never had one, leaves in history. */
  outcomes?: readonly Outcome[]
}

export const TRANSITIONS: readonly Transition[] = [
  { verb: 'create', from: ['absent'], to: 'ready', when: 'a one-off is due at once' },
  { verb: 'create', from: ['absent'], to: 'dependent', when: 'a one-off waits for other jobs' },
  { verb: 'promote', from: ['absent'], to: 'ready', when: 'its nominal time has come' },
  { verb: 'promote', from: ['absent'], to: 'leased', when: 'the same, and an executor of this node has a free slot' },
  { verb: 'promote', from: ['absent'], to: 'blocked', when: 'the same, and it waits for a live run of the job to end' },
  { verb: 'trigger', from: ['absent', 'dependent'], to: 'ready', when: 'a caller asks for a run now' },
  { verb: 'trigger', from: ['absent'], to: 'blocked', when: 'the same, and it waits for a live run of the job to end' },
  { verb: 'backfill', from: ['absent'], to: 'ready', when: 'a nominal time has passed, and the backfill has room' },
  { verb: 'deliver', from: ['absent'], to: 'ready', when: 'a run of a job that it follows has ended' },
  { verb: 'deliver', from: ['absent'], to: 'blocked', when: 'the same, and it waits for a live run of the job to end' },
  { verb: 'deliver', from: ['dependent'], to: 'ready', when: 'the last of the jobs that it waits for has ended' },
  {
    verb: 'deliver',
    from: ['dependent'],
    to: 'finished',
    when: 'one of them did not end as it waits for',
    outcomes: ['canceled', 'skipped'],
  },

  { verb: 'claim', from: ['ready'], to: 'leased', when: 'a worker or an executor takes it' },
  { verb: 'claim', from: ['ready'], to: 'limited', when: 'its key has no free slot, or its rate allows none' },
  { verb: 'claim', from: ['ready'], to: 'finished', when: 'the same, and it is not to wait', outcomes: ['skipped'] },
  { verb: 'renew', from: ['leased'], to: 'leased', when: 'its holder is alive' },
  {
    verb: 'finish',
    from: ['leased'],
    to: 'finished',
    when: 'the attempt was the last, or the run was asked to stop and would go on',
    outcomes: ['succeeded', 'failed', 'canceled', 'lost', 'skipped'],
  },
  {
    verb: 'finish',
    from: ['leased'],
    to: 'waiting',
    when: 'the attempt failed and another one may follow, or its handler asked for later',
    outcomes: ['failed', 'snoozed'],
  },
  {
    verb: 'release',
    from: ['leased'],
    to: 'waiting',
    when: 'its holder stops before it is done: it is due at once',
    outcomes: ['released'],
  },
  {
    verb: 'give_back',
    from: ['leased'],
    to: 'ready',
    when: 'it has not begun, and waited in its holder for a second; or its queue is paused, or its holder stops',
  },
  { verb: 'reap', from: ['leased'], to: 'ready', when: 'the lease expired, attempts are left', outcomes: ['failed'] },
  {
    verb: 'reap',
    from: ['leased'],
    to: 'ready',
    when: 'the same, no attempt is left or it must not be repeated, and it had not begun',
    outcomes: ['released'],
  },
  {
    verb: 'reap',
    from: ['leased'],
    to: 'waiting',
    when: 'its target did not call back within the timeout, attempts are left',
    outcomes: ['failed'],
  },
  {
    verb: 'reap',
    from: ['leased'],
    to: 'finished',
    when: 'no attempt is left, it must not be repeated, or it was asked to stop',
    outcomes: ['failed', 'lost', 'canceled'],
  },

  { verb: 'wake', from: ['waiting'], to: 'ready', when: 'its time has come' },
  { verb: 'wake', from: ['blocked'], to: 'ready', when: 'the run before it has ended' },
  { verb: 'wake', from: ['blocked'], to: 'waiting', when: 'the same, and it was opened again for later' },
  { verb: 'wake', from: ['limited'], to: 'ready', when: 'a slot of its key is free' },
  { verb: 'wake', from: ['limited'], to: 'waiting', when: 'the rate of its key allows it within a second' },

  {
    verb: 'supersede',
    from: ['blocked'],
    to: 'finished',
    when: 'a newer run of the job waits in its place',
    outcomes: ['skipped'],
  },
  {
    verb: 'take_back',
    from: ['ready', 'waiting', 'limited'],
    to: 'absent',
    when: 'a job with the same unique key replaces what it is to do, or when',
  },
  {
    verb: 'cancel',
    from: ['ready', 'waiting', 'blocked', 'limited', 'dependent'],
    to: 'finished',
    when: 'a caller cancels it or its job',
    outcomes: ['canceled'],
  },
  {
    verb: 'cancel',
    from: ['leased'],
    to: 'leased',
    when: 'the same: its holder is asked to stop, and its lease shortened',
  },
  {
    verb: 'purge',
    from: ['ready', 'waiting', 'blocked', 'limited', 'dependent'],
    to: 'finished',
    when: 'its queue is emptied',
    outcomes: ['canceled'],
  },
  {
    verb: 'expire',
    from: ['ready', 'waiting', 'blocked', 'limited'],
    to: 'finished',
    when: 'it did not start by its deadline',
    outcomes: ['skipped'],
  },
  { verb: 'redrive', from: ['finished'], to: 'ready', when: 'a failed or lost run is opened again' },
  { verb: 'redrive', from: ['finished'], to: 'waiting', when: 'the same, for later' },
  {
    verb: 'redrive',
    from: ['finished'],
    to: 'blocked',
    when: 'the same, and it waits for a live run of the job to end',
  },
  {
    verb: 'redrive',
    from: ['finished'],
    to: 'dependent',
    when: 'a job that its failure had canceled is opened with it',
  },
]
