import type { Program } from './programs.ts'
import { median, type Ratio, ratioOf } from './statistics.ts'
import type { Measurement } from './workload.ts'

/** One subject's number, folded over all rounds. */
export interface Result extends Measurement {
  subject: string
}

/** A number of this program beside the same number of the other one. */
export interface Comparison {
  name: string
  subject: string
  unit: string
  this: number
  other: number
  /** This ÷ other. */
  ratio: Ratio
}

interface Ratios {
  pre_enqueued_vs_best_peer: Ratio | null
  pre_enqueued_vs_floor: Ratio | null
  delayed_vs_floor: Ratio | null
  recurring_vs_floor: Ratio | null
  http_vs_floor: Ratio | null
  /** Cost per run ÷ cost per run. */
  ten_million_vs_hundred_thousand: Ratio | null
  /** Throughput of a queue with a limit that is never reached ÷ without. */
  queue_limit: Ratio | null
  /** Throughput with a snapshot held ÷ without. */
  held_snapshot: Ratio | null
}

export interface Report {
  results: Result[]
  comparisons: Comparison[]
  ratios: Ratios
  start_p95_ms: number | null
  storm_s: number | null
  idle_queries_per_s: number | null
  notes: string[]
  failures: string[]
}

const PEERS = ['graphile-worker', 'pg-boss', 'bullmq']
const NEVER: Sample = { name: '', subject: '', unit: '', rounds: new Map() }

interface Sample {
  name: string
  subject: string
  unit: string
  rounds: Map<number, number[]>
}

/** Which subject said something, in which round, and of which program. */
export interface Source {
  subject: string
  round: number
  program?: Program['name']
}

export class ReportWriter {
  readonly #samples = { this: new Map<string, Sample>(), other: new Map<string, Sample>() }
  readonly #notes = new Set<string>()
  readonly #failures: string[] = []

  add({ subject, round, program = 'this' }: Source, measurements: readonly Measurement[]): void {
    const samples = this.#samples[program]
    for (const { name, value, unit } of measurements) {
      const key = keyOf(name, subject)
      const sample = samples.get(key) ?? { name, subject, unit, rounds: new Map() }
      sample.rounds.set(round, [...(sample.rounds.get(round) ?? []), value])
      samples.set(key, sample)
    }
  }

  note(text: string): void {
    this.#notes.add(text)
  }

  fail(text: string): void {
    this.#failures.push(text)
  }

  report(): Report {
    const results = [...this.#samples.this.values()].map(({ name, subject, unit, rounds }) => ({
      ...{ name, subject, unit },
      value: rounded(middle(rounds)),
    }))
    const value = (name: string, subject: string) =>
      results.find((result) => result.name === name && result.subject === subject)?.value ?? null
    const best = PEERS.toSorted((a, b) => (value('pre_enqueued', b) ?? 0) - (value('pre_enqueued', a) ?? 0))[0] ?? ''
    const versus = (name: string) => this.#ratio(name, 'belfry', 'floor')
    return {
      results,
      comparisons: this.#comparisons(),
      ratios: {
        pre_enqueued_vs_best_peer: this.#ratio('pre_enqueued', 'belfry', best),
        pre_enqueued_vs_floor: versus('pre_enqueued'),
        delayed_vs_floor: versus('delayed'),
        recurring_vs_floor: versus('recurring'),
        http_vs_floor: versus('http'),
        ten_million_vs_hundred_thousand: this.#ratio('recurring_among_timers', 'belfry among 100k', 'belfry among 10m'),
        queue_limit: this.#ratio('queue_limit', 'belfry, limited', 'belfry'),
        held_snapshot: this.#ratio('long_run', 'belfry, snapshot held', 'belfry'),
      },
      start_p95_ms: value('start_p95', 'belfry'),
      storm_s: value('storm', 'belfry'),
      idle_queries_per_s: value('idle_queries', 'belfry'),
      notes: [...this.#notes],
      failures: [...this.#failures],
    }
  }

  #ratio(name: string, above: string, below: string): Ratio | null {
    const roundsOf = (subject: string) => (this.#samples.this.get(keyOf(name, subject)) ?? NEVER).rounds
    return ratioOf(roundsOf(above), roundsOf(below))
  }

  #comparisons(): Comparison[] {
    return [...this.#samples.this].flatMap(([key, { name, subject, unit, rounds }]) => {
      const other = this.#samples.other.get(key) ?? NEVER
      const ratio = ratioOf(rounds, other.rounds)
      if (ratio === null) return []
      return [{ name, subject, unit, this: rounded(middle(rounds)), other: rounded(middle(other.rounds)), ratio }]
    })
  }
}

const keyOf = (name: string, subject: string): string => `${name}\n${subject}`

const middle = (rounds: ReadonlyMap<number, number[]>): number => median([...rounds.values()].flat())

export function readable(report: Report): string {
  const shown = (value: number) => value.toLocaleString('en-US')
  const results = report.results.map(({ name, subject, value, unit }) => [name, subject, shown(value), unit])
  const lines = ['', ...aligned([['measured', 'subject', 'value', 'unit'], ...results]), '']
  const comparisons = report.comparisons.map((one) => [
    ...[one.name, one.subject, shown(one.this), shown(one.other), one.unit],
    ...cellsOf(one.ratio),
  ])
  const headline = ['compared', 'subject', 'this', 'other', 'unit', 'this ÷ other', 'range', 'pairs']
  if (comparisons.length > 0) lines.push(...aligned([headline, ...comparisons]), '')
  const ratios = Object.entries(report.ratios).flatMap(([name, ratio]) => (ratio ? [[name, ...cellsOf(ratio)]] : []))
  if (ratios.length > 0) lines.push(...aligned([['ratio', 'median', 'range', 'pairs'], ...ratios]))
  for (const note of report.notes) lines.push(`note: ${note}`)
  for (const failure of report.failures) lines.push(`FAILED: ${failure}`)
  return lines.join('\n')
}

function cellsOf({ median, least, most, pairs }: Ratio): string[] {
  return [median.toFixed(2), `${least.toFixed(2)}–${most.toFixed(2)}`, String(pairs)]
}

/** Columns as wide as their widest cell; numbers end in one line. */
function aligned(rows: readonly string[][]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => (/^\d/.test(cell) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

function rounded(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))
}
