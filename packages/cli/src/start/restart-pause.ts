const SHORTEST_MS = 250
const LONGEST_MS = 10_000
/**
 * Who served this long did not die of how it was started, and the next one will serve too. Not longer: where processes are
 * killed again and again, pauses that grow would leave the port with nobody behind it.
 */
const HEALTHY_MS = 2_000

/** How long to wait before a process that died is started again: longer each time, unless it had served for a while. */
export class RestartPause {
  #deaths = 0

  next(servedMs: number): number {
    this.#deaths = servedMs >= HEALTHY_MS ? 1 : this.#deaths + 1
    return Math.min(SHORTEST_MS * 2 ** (this.#deaths - 1), LONGEST_MS)
  }
}
