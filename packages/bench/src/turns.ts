import type { Options } from './options.ts'
import { type Program, THIS } from './programs.ts'
import type { Subject, Workload } from './workload.ts'

/** One subject, measured once. */
export interface Turn {
  subject: Subject
  program: Program
}

/**
 * What is measured in a round, and in which order: a subject of both programs right after each other, and every second
 * round backwards, so that neither always goes first.
 */
export function turnsOf(
  workload: Workload,
  round: number,
  { subjects, other }: Pick<Options, 'subjects'> & { other: Program | undefined },
): Turn[] {
  const isChosen = ({ name }: Subject) =>
    subjects.length > 0 ? subjects.includes(name) : other === undefined || isBelfry(name)
  const turns = workload.subjects.filter(isChosen).flatMap((subject) => {
    const programs = other && isBelfry(subject.name) ? [THIS, other] : [THIS]
    return programs.map((program) => ({ subject, program }))
  })
  return round % 2 === 1 ? turns : turns.reverse()
}

/** Floors and peers are the same in every checkout. */
function isBelfry(subject: string): boolean {
  return subject.startsWith('belfry')
}
