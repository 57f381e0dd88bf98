import { detailsOf, type Field } from './details.ts'
import { type Column, tableOf } from './table.ts'

export interface Streams {
  out(text: string): void
  err(text: string): void
  /** Columns of the screen; null when nobody looks and nothing must be cut. */
  width: number | null
  /** All of standard input, for `--file -`. */
  input(): Promise<string>
}

/** Answers for a person or for a program: each command says both, and the flag decides. */
export class Terminal {
  readonly #streams: Streams
  readonly #json: boolean

  constructor(streams: Streams, { json }: { json: boolean }) {
    this.#streams = streams
    this.#json = json
  }

  /** One document, or lines of `text` for a person. */
  answer(document: unknown, text: string): void {
    this.#streams.out(this.#json ? JSON.stringify(document) : text)
  }

  details(document: unknown, fields: readonly Field[], ...tables: string[]): void {
    this.answer(document, [detailsOf(fields), ...tables.filter((table) => table !== '')].join('\n\n'))
  }

  /** A list: a line of JSON for each item, or a table. */
  list<Row>(
    columns: readonly Column<Row>[],
    { items, more }: { items: readonly Row[]; more: boolean },
    none: string,
  ): void {
    if (this.#json) {
      for (const item of items) this.#streams.out(JSON.stringify(item))
    } else if (items.length === 0) {
      this.#streams.err(none)
    } else {
      this.#streams.out(this.table(columns, items))
    }
    if (more) this.#streams.err(`these are the first ${items.length}; --limit or --all shows more`)
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
    return tableOf(columns, rows, this.#streams.width)
  }

  /** Beside the answer: never part of what a program reads. */
  note(text: string): void {
    this.#streams.err(text)
  }

  input(): Promise<string> {
    return this.#streams.input()
  }
}
