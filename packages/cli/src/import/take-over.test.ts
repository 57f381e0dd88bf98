import { expect, test } from 'vitest'
import type { Api } from '../api/api.ts'
import { Problem } from '../api/problem.ts'
import type { Entry } from './entry.ts'
import { applyEntries } from './take-over.ts'

const entry = (place: string): Entry => ({
  place,
  source: '',
  plan: { kind: 'job', name: place, job: {}, isSuspended: false, differences: [] },
})
const ENTRIES = ['one', 'two', 'three'].map(entry)

/** A node that creates what it is given, except for `two`. */
async function applied(problem: Error): Promise<string[]> {
  const node = {
    get: async () => ({ items: [] }),
    ask: async (_method: string, path: string) => {
      if (path.endsWith('two')) throw problem
      return { jobId: 'j', created: true, version: 1 }
    },
  }
  const reported = await applyEntries(node as unknown as Api, ENTRIES)
  return reported.map(({ plan, done }) => (plan.kind === 'refused' ? plan.reason : (done ?? '')))
}

test.each([400, 409, 413, 422])('an entry that is refused with %i does not stop the others', async (status) => {
  expect(await applied(new Problem('too much', { status }))).toEqual(['created', 'too much', 'created'])
})

test.each([0, 401, 403, 429, 500, 503])('after %i the rest is not tried, and what was done is told', async (status) => {
  expect(await applied(new Problem('gone', { status }))).toEqual(['created', 'gone', 'not tried any more, after two'])
})
