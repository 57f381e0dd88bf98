import type { Connection } from './connection.ts'
import { Problem, problemOf } from './problem.ts'

export type Query = Readonly<Record<string, string | number | undefined>>

export interface Ask {
  query?: Query
  body?: unknown
}

export interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

const TIMEOUT_MS = 60_000
const LARGEST_PAGE = 1_000

/** A node, as the command sees it. */
export class Api {
  readonly #connection: Connection
  readonly #headers: Record<string, string>

  constructor(connection: Connection, tenant: string | undefined) {
    this.#connection = connection
    this.#headers = {
      authorization: `Bearer ${connection.key}`,
      ...(tenant === undefined ? {} : { 'belfry-tenant': tenant }),
    }
  }

  get<Answer>(path: string, query: Query = {}): Promise<Answer> {
    return this.ask('GET', path, { query })
  }

  post<Answer>(path: string, body?: unknown): Promise<Answer> {
    return this.ask('POST', path, { body })
  }

  /** Up to `limit` items of a list, page by page; `more` says whether there are others. */
  async list<Item>(path: string, query: Query, limit: number): Promise<{ items: Item[]; more: boolean }> {
    const items: Item[] = []
    let cursor: string | undefined
    for (;;) {
      const pageLimit = Math.min(limit - items.length, LARGEST_PAGE)
      const page: Page<Item> = await this.get(path, { ...query, limit: pageLimit, cursor })
      items.push(...page.items)
      if (page.nextCursor === null || page.nextCursor === undefined) return { items, more: false }
      if (items.length >= limit) return { items, more: true }
      cursor = page.nextCursor
    }
  }

  async ask<Answer>(method: string, path: string, { query = {}, body }: Ask = {}): Promise<Answer> {
    const url = new URL(this.#connection.url + path)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    const { status, text } = await this.#send(url, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (status < 200 || status > 299) throw problemOf(status, text)
    try {
      return (text === '' ? null : JSON.parse(text)) as Answer
    } catch {
      throw problemOf(status, text)
    }
  }

  async #send(url: URL, request: RequestInit): Promise<{ status: number; text: string }> {
    try {
      const answer = await fetch(url, { ...request, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) })
      return { status: answer.status, text: await answer.text() }
    } catch (error) {
      throw new Problem(`no answer from ${this.#connection.url} (${reasonOf(error)}); ${ADVICE}`)
    }
  }
}

const ADVICE = 'is a node running there? `belfry start` starts one, and BELFRY_URL says where it is'

function reasonOf(error: unknown): string {
  if ((error as Error).name === 'TimeoutError') return `nothing within ${TIMEOUT_MS / 1_000} s`
  const cause = (error as Error).cause as (NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }) | undefined
  return cause?.code ?? cause?.errors?.[0]?.code ?? cause?.message ?? (error as Error).message
}
