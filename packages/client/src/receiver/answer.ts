/** What a request is answered with. A handler may return or throw one; anything else it returns is a success. */
export class Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string

  constructor(status: number, headers: Readonly<Record<string, string>> = {}, body = '') {
    this.status = status
    this.headers = headers
    this.body = body
  }
}

/** The work goes on by itself; whoever ends it calls `report` with the call's `callbackUrl`. */
export function later(): Answer {
  return new Answer(202, { 'belfry-callback': 'wait' })
}

/** This attempt failed; the next comes after that time. Not a failure of the whole target: no circuit opens. */
export function retryIn(seconds: number, reason = 'not now'): Answer {
  if (!(seconds >= 0)) throw new RangeError(`retryIn takes seconds, not ${seconds}`)
  return problem(429, reason, { 'retry-after': String(Math.ceil(seconds)) })
}

/** Failed for good: trying again would not help. The run becomes a dead letter. */
export function fail(reason: string): Answer {
  return problem(422, reason)
}

export function problem(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return new Answer(status, { 'content-type': 'application/json', ...headers }, JSON.stringify({ error }))
}

export function answerOf(returned: unknown): Answer {
  if (returned instanceof Answer) return returned
  const body = JSON.stringify(returned)
  return body === undefined ? new Answer(204) : new Answer(200, { 'content-type': 'application/json' }, body)
}
