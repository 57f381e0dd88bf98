import type { AddressGuard } from './address-guard.ts'

export interface TargetUrl {
  /** `scheme://host:port`, without a port that is the scheme's own. Templates cannot change it: none may stand there. */
  origin: string
  path: string
  /** Why it may not be called. */
  refusal: string | null
}

const MAX_REMEMBERED = 10_000

/** URLs that were read and judged; the few that are called all the time are read once. */
export class TargetUrls {
  readonly #guard: AddressGuard
  readonly #known = new Map<string, TargetUrl>()

  constructor(guard: AddressGuard) {
    this.#guard = guard
  }

  /** A URL that comes again. */
  recall(text: string): TargetUrl {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const target = this.read(text)
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.set(text, target)
    return target
  }

  read(text: string): TargetUrl {
    const url = parsed(text)
    if (!url) return { origin: '', path: '', refusal: 'the URL cannot be read' }
    return { origin: url.origin, path: url.pathname + url.search, refusal: this.#guard.refusalOfUrl(url) }
  }
}

function parsed(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
