import { expectTypeOf, test } from 'vitest'
import { BelfryApiError, type BelfryClient, type Job, type Page, type RunSummary } from './index.ts'

declare const client: BelfryClient

test('instants go in as dates or texts and come out as texts', () => {
  expectTypeOf<{ runAt: Date; queue: string }>().toExtend<Parameters<typeof client.jobs.create>[0]>()
  expectTypeOf<{ runAt: string; queue: string }>().toExtend<Parameters<typeof client.jobs.create>[0]>()
  expectTypeOf<{ from: Date }>().toExtend<NonNullable<Parameters<typeof client.runs.list>[0]>>()
  expectTypeOf<Job['createdAt']>().toEqualTypeOf<string>()
  expectTypeOf<{ runAt: number }>().not.toExtend<Parameters<typeof client.jobs.create>[0]>()
})

test('a patch may take a field away', () => {
  expectTypeOf<{ labels: null; delay: string }>().toExtend<Parameters<typeof client.jobs.update>[1]>()
})

test('a list is a page when awaited and items when looped over', () => {
  type Runs = ReturnType<typeof client.jobs.runs>
  expectTypeOf<Awaited<Runs>>().toEqualTypeOf<Page<RunSummary>>()
  expectTypeOf<Runs>().toExtend<AsyncIterable<RunSummary>>()
})

test('a code that was checked is known', () => {
  const error: unknown = null
  if (BelfryApiError.is(error, 'name_taken', 'not_found'))
    expectTypeOf(error.code).toEqualTypeOf<'name_taken' | 'not_found'>()
  // @ts-expect-error: there is no such code
  BelfryApiError.is(error, 'name_token')
})
