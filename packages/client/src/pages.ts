import type { Page } from './wire.ts'

/** What a list answers: a page, or all there is. */
type Listed<Item> = Page<Item> | { items: Item[]; nextCursor?: undefined }

/**
 * A list. `await` it for one page, or loop over it (`for await`) for all items of all pages. Nothing is asked before one of
 * the two, and each further page only when the loop gets there.
 */
export class Pages<Item, Answer extends Listed<Item> = Page<Item>> implements PromiseLike<Answer>, AsyncIterable<Item> {
  readonly #load: (cursor: string | undefined) => Promise<Answer>
  #first: Promise<Answer> | null = null

  constructor(load: (cursor: string | undefined) => Promise<Answer>) {
    this.#load = load
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
  then<Kept = Answer, Caught = never>(
    onPage?: ((page: Answer) => Kept | PromiseLike<Kept>) | null,
    onError?: ((error: unknown) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Kept | Caught> {
    this.#first ??= this.#load(undefined)
    return this.#first.then(onPage, onError)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items
  }

  /** The pages one by one, for whoever works page by page. */
  async *pages(): AsyncGenerator<Answer, void, undefined> {
    let page: Answer = await this.then()
    for (;;) {
      yield page
      if (page.nextCursor == null) return
      page = await this.#load(page.nextCursor)
    }
  }
}
