import type { AddressGuard } from './address-guard.ts'

export interface TargetUrl {
  /** `scheme://host:port`, without a port that is the scheme's own. Templates cannot change it: none may stand there. */
  origin: string
  path: string
  /** Why it may not be called. */
  refusal: string | null
}

const MAX_REMEMBERED = 10_000
/** A beginning that ends with its host or port, whatever stands behind the next slash. */
const PLAIN_BEGINNING = /^https?:\/\/[\w.\-:[\]]+$/i
/** What reading a URL leaves as it is: nothing to encode or to strip, and no segment that may be a dot or two. */
const PLAIN_PATH = /^(?:\/(?!\.|%2e)[\w\-~!$&()*+,;=:@?.%]*)+(?<!\?)$/i

/**
 * URLs, read and judged. Targets differ in their paths far more than in their hosts: a beginning is read once, and a path
 * that reading would not change is not read at all.
 */
export class TargetUrls {
  readonly #guard: AddressGuard
  readonly #beginnings = new Map<string, TargetUrl>()
  readonly #others = new Map<string, TargetUrl>()

  constructor(guard: AddressGuard) {
    this.#guard = guard
  }

  of(text: string): TargetUrl {
    const slash = text.indexOf('/', 8)
    if (slash > 0) {
      const beginning = this.#beginningOf(text.slice(0, slash))
      const path = text.slice(slash)
      if (beginning !== null && beginning.origin !== '' && PLAIN_PATH.test(path))
        return { origin: beginning.origin, path, refusal: beginning.refusal }
    }
    return this.#others.get(text) ?? remember(this.#others, text, this.#read(text))
  }

  #beginningOf(text: string): TargetUrl | null {
    const known = this.#beginnings.get(text)
    if (known !== undefined) return known
    return PLAIN_BEGINNING.test(text) ? remember(this.#beginnings, text, this.#read(`${text}/`)) : null
  }

  #read(text: string): TargetUrl {
    const url = parsed(text)
    if (!url) return { origin: '', path: '', refusal: 'the URL cannot be read' }
    return { origin: url.origin, path: url.pathname + url.search, refusal: this.#guard.refusalOfUrl(url) }
  }
}

function remember(map: Map<string, TargetUrl>, text: string, target: TargetUrl): TargetUrl {
  if (map.size >= MAX_REMEMBERED) map.clear()
  map.set(text, target)
  return target
}

function parsed(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
