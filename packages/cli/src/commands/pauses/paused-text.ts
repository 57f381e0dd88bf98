import type { Pause } from '../../api/shapes.ts'

/** What is paused, in words. */
export const pausedText = ({ kind, name }: Pick<Pause, 'kind' | 'name'>): string =>
  name === null ? `the ${kind}` : `the ${kind} ${name}`
