/** Why one of several processes cannot be started or go on, told by the first of them in its stead. */
export class StartFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}
