/** The sweep wakes runs of jobs that do not fit. */
const MAX_EXPECTED = 10_000
const WAITS = /"overlap":"(?:buffer_|cancel_)/

/**
 * Of which jobs a run may wait for another run to end. Most definitions say nothing of overlap, and their jobs are not looked at. Under
 * `skip` a run may wait too that was triggered so, opened again, or met a backfill: those jobs are remembered.
 */
export class ExpectedJobs {
  /** The longest remembered first. */
  readonly #jobIds = new Set<string>()

  /**
   * A run of the job is being made that waits, whatever the definition says. To be told before the commit, so that no end of the
   * other run comes between.
   */
  expect(jobId: string): void {
    const [oldest] = this.#jobIds
    if (this.#jobIds.size >= MAX_EXPECTED && oldest !== undefined) this.#jobIds.delete(oldest)
    this.#jobIds.add(jobId)
  }

  /** True also where the definition is not known. */
  mayWait(jobId: string, definitionJson: string | null | undefined): boolean {
    if (definitionJson == null) return true
    return (definitionJson.includes('"overlap":"') && WAITS.test(definitionJson)) || this.#jobIds.has(jobId)
  }

  /** No run of the job waits any more. */
  forget(jobId: string): void {
    this.#jobIds.delete(jobId)
  }
}
