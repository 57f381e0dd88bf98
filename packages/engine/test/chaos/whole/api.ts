import type { Random } from '../../../src/runtime/random.ts'
import type { Fleet } from './fleet.ts'

/** A call that the harness made, and what it was answered: `null` where the answer never came. */
export interface Call {
  what: string
  node: string
  sentAt: number
  answeredAt: number
  status: number | null
}

export interface Answer {
  status: number
  body: Record<string, unknown>
}

const ANSWER_MS = 5_000
const MOST_ODD = 20
/** Answers that a caller has to expect: done, no such job any more, it came while the node was stopped, not in this state, come again later. */
const EXPECTED = [200, 201, 202, 204, 404, 408, 409, 412, 429, 503]

/** Calls one of the nodes, by chance, and writes down what was said of which job. */
export class Api {
  readonly calls = new Map<string, Call[]>()
  /** Answers that should not be given, whatever happens. */
  readonly odd: string[] = []
  readonly #fleet: Fleet
  readonly #random: Random

  constructor(fleet: Fleet, random: Random) {
    this.#fleet = fleet
    this.#random = random
  }

  /** `null`: the call may have been done or not. */
  async call(method: string, path: string, body?: object, jobId?: string): Promise<Answer | null> {
    const nodes = [...this.#fleet.urls]
    const [node, url] = nodes[Math.floor(this.#random.float() * nodes.length)] as [string, string]
    const sentAt = Date.now()
    const answer = await this.#send(method, `${url}${path}`, body)
    const call = { node, sentAt, answeredAt: Date.now(), status: answer?.status ?? null }
    const ids = [...(jobId === undefined ? [] : [jobId]), ...idsIn(answer)]
    const what = `${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body).slice(0, 300)}`}`
    for (const id of new Set(ids)) this.calls.set(id, [...(this.calls.get(id) ?? []), { what, ...call }])
    if (answer && !EXPECTED.includes(answer.status) && this.odd.length < MOST_ODD)
      this.odd.push(`${what} was answered ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }

  async #send(method: string, url: string, body?: object): Promise<Answer | null> {
    try {
      const response = await fetch(url, {
        method,
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: { authorization: `Bearer ${this.#fleet.key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
    } catch {
      return null
    }
  }
}

function idsIn(answer: Answer | null): string[] {
  const { jobId, jobs } = (answer?.body ?? {}) as { jobId?: string; jobs?: { jobId: string }[] }
  return [...(jobId === undefined ? [] : [jobId]), ...(jobs ?? []).map((job) => job.jobId)]
}

export const wasDone = (answer: Answer | null): answer is Answer => answer !== null && answer.status < 300
