import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { readOptions } from './options.ts'
import type { Workload } from './workload.ts'

const workload = (name: string, ...subjects: string[]): Workload => ({
  ...{ name, summary: '', rounds: { quick: 1, full: 3 } },
  subjects: subjects.map((subject) => ({ name: subject, perform: async () => [] })),
})

const read = (...args: string[]) =>
  readOptions(args, [workload('delayed', 'floor', 'belfry'), workload('steady', 'belfry', 'belfry, half recurring')])

test('without options everything is measured, at full pace, as often as each workload asks for', () => {
  expect(read()).toEqual({
    ...{ pace: 'full', only: [], subjects: [], against: undefined, rounds: undefined },
    ...{ jsonFile: undefined, list: false, scale: 1, shards: 64 },
  })
})

test('a checkout to compare with and a number of rounds', () => {
  const options = read('--quick', '--only', 'delayed, steady', '--against', '../before', '--rounds', '9')
  expect(options).toMatchObject({ pace: 'quick', only: ['delayed', 'steady'], rounds: 9 })
  expect(options.against).toBe(resolve('../before'))
})

test('subjects are named one by one, since their names may have commas', () => {
  const { subjects } = read('--subject', 'belfry, half recurring', '--subject', 'floor')
  expect(subjects).toEqual(['belfry, half recurring', 'floor'])
})

test.each([
  [['--only', 'dealyed'], 'no workload dealyed; there are delayed, steady'],
  [['--subject', 'pg-boss'], 'no subject pg-boss; the chosen workloads have floor; belfry; belfry, half recurring'],
  [['--only', 'steady', '--subject', 'floor'], 'no subject floor; the chosen workloads have belfry; belfry, half'],
  [['--rounds', '0'], '--rounds must be a whole number from 1, not 0'],
  [['--rounds', '2.5'], '--rounds must be a whole number from 1, not 2.5'],
  [['--rounds', 'many'], '--rounds must be a whole number from 1, not many'],
  [['--scale', '0'], '--scale must be a number above 0, not 0'],
  [['--shards', '5000'], '--shards must be a whole number from 1 to 4096, not 5000'],
])('%j is refused with what would be right', (args, message) => {
  expect(() => read(...args)).toThrow(message)
})
