import { BelfryError } from '../errors.ts'

/** The actor of whoever asks with the installation's own key. No API key is called so. */
export const OPERATOR = 'admin'
const BESIDE = `${OPERATOR}, `

const isOperators = (pausedBy: string | null): boolean =>
  pausedBy === OPERATOR || (pausedBy?.startsWith(BESIDE) ?? false)

/** Who has paused something once `actor` has too: the pause of an operator and the tenant's own stand side by side. */
export function withPauser(pausedBy: string | null, actor: string): string {
  if (actor === OPERATOR) return isOperators(pausedBy) || pausedBy === null ? (pausedBy ?? actor) : BESIDE + pausedBy
  return pausedBy === OPERATOR ? BESIDE + actor : (pausedBy ?? actor)
}

/** Who still pauses it when `actor` ends that; null: nobody. What an operator has paused stays so until an operator ends it. */
export function withoutPauser(what: string, pausedBy: string | null, actor: string): string | null {
  if (!isOperators(pausedBy)) return null
  if (actor !== OPERATOR)
    throw new BelfryError(
      'forbidden',
      `${what} was paused by an operator of this installation ("${OPERATOR}"): only an operator may end that`,
    )
  return pausedBy?.startsWith(BESIDE) ? pausedBy.slice(BESIDE.length) : null
}
