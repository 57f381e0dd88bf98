/** What the run's own methods throw; the codes are those of the library. */
export class RunError extends Error {
  override readonly name = 'RunError'
  readonly code: 'lease_lost' | 'invalid_argument' | 'payload_too_large'

  constructor(code: RunError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
