import { median } from './statistics.ts'
import type { Measurement } from './workload.ts'

/** One subject's number, folded over all rounds. */
export interface Result extends Measurement {
  subject: string
}

interface Ratios {
  pre_enqueued_vs_best_peer: number | null
  pre_enqueued_vs_floor: number | null
  delayed_vs_floor: number | null
  recurring_vs_floor: number | null
  http_vs_floor: number | null
  /** Cost per run ÷ cost per run. */
  ten_million_vs_hundred_thousand: number | null
  /** Throughput of a queue with a limit that is never reached ÷ without. */
  queue_limit: number | null
  /** Throughput with a snapshot held ÷ without. */
  held_snapshot: number | null
}

export interface Report {
  results: Result[]
  ratios: Ratios
  start_p95_ms: number | null
  storm_s: number | null
  idle_queries_per_s: number | null
  notes: string[]
  failures: string[]
}

const PEERS = ['graphile-worker', 'pg-boss', 'bullmq']

export class ReportWriter {
  readonly #samples = new Map<string, { result: Omit<Result, 'value'>; values: number[] }>()
  readonly #notes = new Set<string>()
  readonly #failures: string[] = []

  add(subject: string, measurements: readonly Measurement[]): void {
    for (const { name, value, unit } of measurements) {
      const key = `${name}\n${subject}`
      const sample = this.#samples.get(key) ?? { result: { name, subject, unit }, values: [] }
      sample.values.push(value)
      this.#samples.set(key, sample)
    }
  }

  note(text: string): void {
    this.#notes.add(text)
  }

  fail(text: string): void {
    this.#failures.push(text)
  }

  report(): Report {
    const results = [...this.#samples.values()].map(({ result, values }) => ({
      ...result,
      value: rounded(median(values)),
    }))
    const value = (name: string, subject: string) =>
      results.find((result) => result.name === name && result.subject === subject)?.value ?? null
    const peers = PEERS.flatMap((peer) => value('pre_enqueued', peer) ?? [])
    const versus = (name: string) => ratio(value(name, 'belfry'), value(name, 'floor'))
    return {
      results,
      ratios: {
        pre_enqueued_vs_best_peer: ratio(value('pre_enqueued', 'belfry'), peers.length > 0 ? Math.max(...peers) : null),
        pre_enqueued_vs_floor: versus('pre_enqueued'),
        delayed_vs_floor: versus('delayed'),
        recurring_vs_floor: versus('recurring'),
        http_vs_floor: versus('http'),
        ten_million_vs_hundred_thousand: ratio(
          value('recurring_among_timers', 'belfry among 100k'),
          value('recurring_among_timers', 'belfry among 10m'),
        ),
        queue_limit: ratio(value('queue_limit', 'belfry, limited'), value('queue_limit', 'belfry')),
        held_snapshot: ratio(value('long_run', 'belfry, snapshot held'), value('long_run', 'belfry')),
      },
      start_p95_ms: value('start_p95', 'belfry'),
      storm_s: value('storm', 'belfry'),
      idle_queries_per_s: value('idle_queries', 'belfry'),
      notes: [...this.#notes],
      failures: [...this.#failures],
    }
  }
}

export function readable(report: Report): string {
  const rows = report.results.map(({ name, subject, value, unit }) => [
    name,
    subject,
    value.toLocaleString('en-US'),
    unit,
  ])
  const lines = ['', ...aligned([['measured', 'subject', 'value', 'unit'], ...rows]), '']
  const ratios = Object.entries(report.ratios).map(([name, value]) => [name, value === null ? '–' : value.toFixed(2)])
  lines.push(...aligned([['ratio', ''], ...ratios]))
  for (const note of report.notes) lines.push(`note: ${note}`)
  for (const failure of report.failures) lines.push(`FAILED: ${failure}`)
  return lines.join('\n')
}

/** Columns as wide as their widest cell; numbers end in one line. */
function aligned(rows: readonly string[][]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) =>
        /^[\d–]/.test(cell) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
}

function ratio(above: number | null, below: number | null): number | null {
  return above === null || below === null ? null : Math.round((above / below) * 1_000) / 1_000
}

function rounded(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))
}
