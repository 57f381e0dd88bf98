/** How a program of the bench talks with the process that started it: it is asked, and tells. */

/** Where Belfry's API is, for a process that calls it. */
export interface Api {
  port: number
  key: string
}

export interface Asked<Ask> {
  id: number
  ask: Ask
}

export type Reply<Told> = { id: number } & ({ told: Told } | { error: string })

export const headersOf = ({ key }: Api) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

/** Answers everything that this process is asked, until whoever started it is gone. */
export function answerAsks<Ask, Told>(perform: (ask: Ask) => Promise<Told>): void {
  process.on('message', ({ id, ask }: Asked<Ask>) => {
    perform(ask).then(
      (told) => process.send?.({ id, told }),
      (error: unknown) => process.send?.({ id, error: error instanceof Error ? (error.stack ?? '') : String(error) }),
    )
  })
  process.on('disconnect', () => process.exit(0))
}
