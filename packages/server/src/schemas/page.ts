import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'

const PAGE = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: 'How many at most; default 100. A page may have fewer.' }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_000, description: 'The `nextCursor` of the page before, unchanged.' }),
  ),
}

/** The query of a list: its filters, and `limit` and `cursor`. */
export const pageQuery = <Filters extends TProperties>(filters: Filters): TObject<Filters & typeof PAGE> =>
  Type.Object({ ...filters, ...PAGE }, { additionalProperties: false }) as never

/** What a list answers. */
export const pageOf = <Item extends TSchema>(item: Item) =>
  Type.Object({
    items: Type.Array(item),
    nextCursor: nullable(Type.String({ description: 'Where the next page begins; null: that was all.' })),
    asOf: Type.Optional(instant('How things stood when, if a replica answered.')),
  })

/** A value that may be null. Written as two types, because a choice of schemas makes answers slow to write. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  const { type } = schema as { type?: string }
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [type, 'null'] })
}

/** An instant: RFC 3339, UTC. */
export const instant = (description: string) =>
  Type.Unsafe<Date>({ type: 'string', format: 'date-time', description, examples: ['2026-12-01T09:00:00.000Z'] })

/** An instant that somebody gives. */
export const instantText = (description: string) =>
  Type.String({ format: 'date-time', maxLength: 64, description, examples: ['2026-12-01T09:00:00Z'] })

/** The answer of 204. */
export const noContent = Type.Unsafe<undefined>({ type: 'null', description: 'Done.' })
