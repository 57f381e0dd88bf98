import { expect, test } from 'vitest'
import { ReportWriter, readable } from './report.ts'

function throughput(name: string, value: number) {
  return [{ name, value, unit: 'runs/s' }]
}

test('a subject is judged by the median of its rounds', () => {
  const writer = new ReportWriter()
  for (const value of [30_000, 90_000, 40_000]) writer.add('belfry', throughput('pre_enqueued', value))
  expect(writer.report().results).toEqual([{ name: 'pre_enqueued', subject: 'belfry', value: 40_000, unit: 'runs/s' }])
})

test('Belfry is compared with the fastest peer that took part, and with the floor', () => {
  const writer = new ReportWriter()
  writer.add('floor', throughput('pre_enqueued', 50_000))
  writer.add('belfry', throughput('pre_enqueued', 45_000))
  writer.add('graphile-worker', throughput('pre_enqueued', 22_500))
  writer.add('pg-boss', throughput('pre_enqueued', 15_000))
  const { ratios } = writer.report()
  expect(ratios.pre_enqueued_vs_best_peer).toBe(2)
  expect(ratios.pre_enqueued_vs_floor).toBe(0.9)
})

test('the cost of ten million timers is above one when they make runs slower', () => {
  const writer = new ReportWriter()
  writer.add('belfry among 100k', throughput('recurring_among_timers', 40_000))
  writer.add('belfry among 10m', throughput('recurring_among_timers', 32_000))
  expect(writer.report().ratios.ten_million_vs_hundred_thousand).toBe(1.25)
})

test('a ratio with a side that was not measured is null, never a number', () => {
  const writer = new ReportWriter()
  writer.add('belfry', throughput('delayed', 30_000))
  const report = writer.report()
  expect(new Set(Object.values(report.ratios))).toEqual(new Set([null]))
  expect(report.storm_s).toBeNull()
})

test('what failed and what was left out stand in the readable report', () => {
  const writer = new ReportWriter()
  writer.note('bullmq left out: no Redis')
  writer.fail('delayed · belfry: only 5 of 10 reached history')
  const text = readable(writer.report())
  expect(text).toContain('note: bullmq left out: no Redis')
  expect(text).toContain('FAILED: delayed · belfry: only 5 of 10 reached history')
})
