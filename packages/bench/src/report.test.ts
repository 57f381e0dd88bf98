import { expect, test } from 'vitest'
import { ReportWriter, readable } from './report.ts'

function throughput(name: string, value: number) {
  return [{ name, value, unit: 'runs/s' }]
}

test('a subject is judged by the median of its rounds', () => {
  const writer = new ReportWriter()
  for (const [index, value] of [30_000, 90_000, 40_000].entries())
    writer.add({ subject: 'belfry', round: index + 1 }, throughput('pre_enqueued', value))
  expect(writer.report().results).toEqual([{ name: 'pre_enqueued', subject: 'belfry', value: 40_000, unit: 'runs/s' }])
})

test('Belfry is compared with the fastest peer that took part, and with the floor', () => {
  const writer = new ReportWriter()
  writer.add({ subject: 'floor', round: 1 }, throughput('pre_enqueued', 50_000))
  writer.add({ subject: 'belfry', round: 1 }, throughput('pre_enqueued', 45_000))
  writer.add({ subject: 'graphile-worker', round: 1 }, throughput('pre_enqueued', 22_500))
  writer.add({ subject: 'pg-boss', round: 1 }, throughput('pre_enqueued', 15_000))
  const { ratios } = writer.report()
  expect(ratios.pre_enqueued_vs_best_peer?.median).toBe(2)
  expect(ratios.pre_enqueued_vs_floor?.median).toBe(0.9)
})

test('subjects are compared round by round: a machine that halves its speed changes no ratio', () => {
  const writer = new ReportWriter()
  for (const [round, speed] of [
    [1, 1],
    [2, 0.5],
    [3, 0.1],
  ] as const) {
    writer.add({ subject: 'floor', round }, throughput('delayed', 20_000 * speed))
    writer.add({ subject: 'belfry', round }, throughput('delayed', 30_000 * speed))
  }
  expect(writer.report().ratios.delayed_vs_floor).toEqual({ median: 1.5, least: 1.5, most: 1.5, pairs: 3 })
})

test('the cost of ten million timers is above one when they make runs slower', () => {
  const writer = new ReportWriter()
  writer.add({ subject: 'belfry among 100k', round: 1 }, throughput('recurring_among_timers', 40_000))
  writer.add({ subject: 'belfry among 10m', round: 1 }, throughput('recurring_among_timers', 32_000))
  expect(writer.report().ratios.ten_million_vs_hundred_thousand?.median).toBe(1.25)
})

test('a ratio with a side that was not measured is null, never a number', () => {
  const writer = new ReportWriter()
  writer.add({ subject: 'belfry', round: 1 }, throughput('delayed', 30_000))
  const report = writer.report()
  expect(new Set(Object.values(report.ratios))).toEqual(new Set([null]))
  expect(report.storm_s).toBeNull()
})

test('a number of two programs is compared pair by pair, whatever it is; the results are those of this one', () => {
  const writer = new ReportWriter()
  const wal = (value: number) => [{ name: 'delayed_wal', value, unit: 'bytes/run' }]
  for (const [round, mine, theirs] of [
    [1, 300, 600],
    [2, 500, 500],
    [3, 400, 500],
  ] as const) {
    writer.add({ subject: 'belfry', round, program: 'this' }, wal(mine))
    writer.add({ subject: 'belfry', round, program: 'other' }, wal(theirs))
  }
  const report = writer.report()
  expect(report.results.map(({ value }) => value)).toEqual([400])
  expect(report.comparisons).toEqual([
    {
      ...{ name: 'delayed_wal', subject: 'belfry', unit: 'bytes/run', this: 400, other: 500 },
      ratio: { median: 0.8, least: 0.5, most: 1, pairs: 3 },
    },
  ])
  expect(readable(report)).toMatch(/delayed_wal +belfry +400 +500 +bytes\/run +0\.80 +0\.50–1\.00 +3/)
})

test('what only one of two programs was measured at is not compared', () => {
  const writer = new ReportWriter()
  writer.add({ subject: 'belfry', round: 1, program: 'this' }, throughput('steady', 1_000))
  expect(writer.report().comparisons).toEqual([])
})

test('what failed and what was left out stand in the readable report', () => {
  const writer = new ReportWriter()
  writer.note('bullmq left out: no Redis')
  writer.fail('delayed · belfry: only 5 of 10 reached history')
  const text = readable(writer.report())
  expect(text).toContain('note: bullmq left out: no Redis')
  expect(text).toContain('FAILED: delayed · belfry: only 5 of 10 reached history')
})
