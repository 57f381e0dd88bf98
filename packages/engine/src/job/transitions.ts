import type { Outcome, RunState } from './states.ts'

/**
 * Every move a run can make. `absent`: there is no such run yet. `finished`: it has left `runs` and stands in history.
 * What is not in this list must not happen, whatever crashes in between.
 */

export type Place = 'absent' | RunState | 'finished'

export type Verb =
  | 'create'
  | 'promote'
  | 'trigger'
  | 'backfill'
  | 'claim'
  | 'renew'
  | 'finish'
  | 'release'
  | 'reap'
  | 'wake'
  | 'supersede'
  | 'cancel'
  | 'purge'
  | 'expire'
  | 'redrive'
  | 'deliver'

export interface Transition {
  verb: Verb
  from: Place
  to: Place
  when: string
  /** The outcomes that the attempt, or the run that never had one, leaves in history. */
  outcomes?: readonly Outcome[]
}

export const TRANSITIONS: readonly Transition[] = [
  { verb: 'create', from: 'absent', to: 'ready', when: 'a one-off is due at once' },
  { verb: 'create', from: 'absent', to: 'leased', when: 'a local executor has credit for it' },

  { verb: 'create', from: 'absent', to: 'dependent', when: 'a one-off waits for other jobs' },

  { verb: 'promote', from: 'absent', to: 'ready', when: 'its nominal time has come' },
  { verb: 'promote', from: 'absent', to: 'leased', when: 'its time has come and a local executor has credit' },
  { verb: 'promote', from: 'absent', to: 'blocked', when: 'another run of the job is alive and it is to be buffered' },
  { verb: 'trigger', from: 'absent', to: 'ready', when: 'somebody asks for a run now' },
  { verb: 'trigger', from: 'absent', to: 'blocked', when: 'somebody asks while another run is alive' },
  { verb: 'backfill', from: 'absent', to: 'ready', when: 'a nominal time of the past is to be run, and there is room' },

  { verb: 'trigger', from: 'dependent', to: 'ready', when: 'somebody asks for it without waiting any longer' },
  { verb: 'deliver', from: 'absent', to: 'ready', when: 'a run of a job that it follows has ended' },
  { verb: 'deliver', from: 'absent', to: 'blocked', when: 'the same, while another run of the job is alive' },
  { verb: 'deliver', from: 'dependent', to: 'ready', when: 'the last of the jobs that it waits for has ended' },
  { verb: 'deliver', from: 'dependent', to: 'leased', when: 'the same, and a local executor has a free slot for it' },
  {
    verb: 'deliver',
    from: 'dependent',
    to: 'finished',
    when: 'one of them did not end as it waits for',
    outcomes: ['canceled', 'skipped'],
  },

  { verb: 'claim', from: 'ready', to: 'leased', when: 'a worker takes it' },
  { verb: 'claim', from: 'ready', to: 'limited', when: 'its key has no free slot, or its rate allows none' },
  { verb: 'claim', from: 'ready', to: 'finished', when: 'the same, and it is not to wait', outcomes: ['skipped'] },
  { verb: 'renew', from: 'leased', to: 'leased', when: 'the holder is alive' },

  {
    verb: 'finish',
    from: 'leased',
    to: 'finished',
    when: 'the attempt was the last',
    outcomes: ['succeeded', 'failed', 'canceled', 'lost'],
  },
  { verb: 'finish', from: 'leased', to: 'waiting', when: 'it failed and may be tried again', outcomes: ['failed'] },
  { verb: 'finish', from: 'leased', to: 'waiting', when: 'the handler asked for later', outcomes: ['snoozed'] },
  { verb: 'release', from: 'leased', to: 'ready', when: 'the holder stops before it is done', outcomes: ['released'] },
  { verb: 'reap', from: 'leased', to: 'ready', when: 'the lease expired, attempts are left', outcomes: ['failed'] },
  {
    verb: 'reap',
    from: 'leased',
    to: 'waiting',
    when: 'the attempt timed out, attempts are left',
    outcomes: ['failed'],
  },
  {
    verb: 'reap',
    from: 'leased',
    to: 'finished',
    when: 'no attempt is left, it must not be repeated, or a cancel was asked for',
    outcomes: ['failed', 'lost', 'canceled'],
  },

  { verb: 'wake', from: 'waiting', to: 'ready', when: 'its backoff or snooze is over' },
  { verb: 'wake', from: 'blocked', to: 'ready', when: 'the run before it is gone' },
  { verb: 'wake', from: 'limited', to: 'ready', when: 'a slot of its key is free' },
  { verb: 'wake', from: 'limited', to: 'waiting', when: 'the rate of its key allows it soon' },
  { verb: 'wake', from: 'blocked', to: 'waiting', when: 'the same, and it was opened again for later' },
  {
    verb: 'supersede',
    from: 'blocked',
    to: 'finished',
    when: 'a newer run of the job waits in its place',
    outcomes: ['skipped'],
  },

  { verb: 'cancel', from: 'ready', to: 'finished', when: 'it had not started', outcomes: ['canceled'] },
  { verb: 'cancel', from: 'waiting', to: 'finished', when: 'it was between attempts', outcomes: ['canceled'] },
  { verb: 'cancel', from: 'blocked', to: 'finished', when: 'it had not started', outcomes: ['canceled'] },
  { verb: 'cancel', from: 'limited', to: 'finished', when: 'it had not started', outcomes: ['canceled'] },
  { verb: 'cancel', from: 'leased', to: 'leased', when: 'its holder is asked to stop' },
  { verb: 'purge', from: 'ready', to: 'finished', when: 'its queue is emptied', outcomes: ['canceled'] },
  { verb: 'purge', from: 'waiting', to: 'finished', when: 'its queue is emptied', outcomes: ['canceled'] },
  { verb: 'purge', from: 'blocked', to: 'finished', when: 'its queue is emptied', outcomes: ['canceled'] },
  { verb: 'purge', from: 'limited', to: 'finished', when: 'its queue is emptied', outcomes: ['canceled'] },
  { verb: 'cancel', from: 'dependent', to: 'finished', when: 'it had not started', outcomes: ['canceled'] },
  { verb: 'purge', from: 'dependent', to: 'finished', when: 'its queue is emptied', outcomes: ['canceled'] },
  { verb: 'expire', from: 'ready', to: 'finished', when: 'it did not start by its deadline', outcomes: ['skipped'] },
  { verb: 'expire', from: 'waiting', to: 'finished', when: 'it did not start by its deadline', outcomes: ['skipped'] },
  { verb: 'expire', from: 'blocked', to: 'finished', when: 'it did not start by its deadline', outcomes: ['skipped'] },
  { verb: 'expire', from: 'limited', to: 'finished', when: 'it did not start by its deadline', outcomes: ['skipped'] },

  { verb: 'redrive', from: 'finished', to: 'ready', when: 'a failed or lost run is opened again' },
  { verb: 'redrive', from: 'finished', to: 'dependent', when: 'a job whose failure had canceled it is opened again' },
  { verb: 'redrive', from: 'finished', to: 'blocked', when: 'the same, while another run of the job is alive' },
]

export function mayMove(from: Place, verb: Verb, to: Place): boolean {
  return TRANSITIONS.some((move) => move.from === from && move.verb === verb && move.to === to)
}
