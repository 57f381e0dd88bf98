declare const named: unique symbol

/** A row as it came: the values of its columns, in their order. */
export type RowOf<Named extends object> = readonly unknown[] & { readonly [named]?: Named }

/** The text that gives a column, and the type of what PostgreSQL answers for it. */
export type Column<Value> = string & { readonly answers: Value }

export const column = <Value>(text: string): Column<Value> => text as Column<Value>

type Texts<Named extends object> = { readonly [Name in keyof Named]: string }

/**
 * The columns of a statement's answer by their names, each with the text that gives it. One list writes the statement and reads its
 * rows, so the two cannot differ; reading costs an index into the row.
 */
export class Columns<Named extends object> {
  /** The list of a select. */
  readonly text: string
  readonly #names: readonly string[]
  readonly #blank: Readonly<Record<string, null>>
  readonly #places: { readonly [Name in keyof Named]: number }

  constructor(texts: Texts<Named>) {
    this.text = Object.values(texts).join(', ')
    this.#names = Object.keys(texts)
    this.#blank = Object.fromEntries(this.#names.map((name) => [name, null]))
    this.#places = Object.fromEntries(this.#names.map((name, place) => [name, place])) as never
  }

  /** The list of a select that gives some of the columns, and null for the others: for another part of a union. */
  textOf(some: Partial<Texts<Named>>): string {
    return this.#names.map((name) => some[name as keyof Named] ?? 'null').join(', ')
  }

  get<Name extends keyof Named>(row: RowOf<Named>, name: Name): Named[Name] {
    return row[this.#places[name]] as Named[Name]
  }

  /** All of them. */
  read(row: RowOf<Named>): Named {
    // A copy of one object, so that all that are read have one shape.
    const read: Record<string, unknown> = { ...this.#blank }
    for (let place = 0; place < this.#names.length; place++) read[this.#names[place] as string] = row[place]
    return read as Named
  }

  /** What the statement answers behind them. */
  behind(row: RowOf<Named>): readonly unknown[] {
    return row.slice(this.#names.length)
  }
}

/** Columns whose types an interface names, or else each its own: `columns({ state: column<number>('r.state') })`. */
export function columns<Named extends object>(
  texts: { readonly [Name in keyof Named]: Column<Named[Name]> },
): Columns<Named>
export function columns<Named extends object>(texts: Texts<Named>): Columns<Named>
export function columns<Named extends object>(texts: Texts<Named>): Columns<Named> {
  return new Columns(texts)
}

/** What a row of such columns reads as. */
export type Read<Of> = Of extends Columns<infer Named> ? Named : never
