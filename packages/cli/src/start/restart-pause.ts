const SHORTEST_MS = 250
const LONGEST_MS = 10_000
/** Who lived this long did not die of how it was started. */
const HEALTHY_MS = 30_000

/** How long to wait before a process that died is started again: longer each time, unless it had lived for a while. */
export class RestartPause {
  #deaths = 0

  next(livedMs: number): number {
    this.#deaths = livedMs >= HEALTHY_MS ? 1 : this.#deaths + 1
    return Math.min(SHORTEST_MS * 2 ** (this.#deaths - 1), LONGEST_MS)
  }
}
