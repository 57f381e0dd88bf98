import { expect, test } from 'vitest'
import type { Program } from './programs.ts'
import { turnsOf } from './turns.ts'
import type { Workload } from './workload.ts'

const OTHER: Program = { name: 'other', child: '/elsewhere/child.js' }
const WORKLOAD: Workload = {
  ...{ name: 'steady', summary: '', rounds: { quick: 1, full: 3 } },
  subjects: ['floor', 'belfry', 'belfry, limited', 'pg-boss'].map((name) => ({ name, perform: async () => [] })),
}

function order(round: number, other?: Program, subjects: string[] = []): string[] {
  return turnsOf(WORKLOAD, round, { subjects, other }).map(({ subject, program }) => `${subject.name} ${program.name}`)
}

test('all subjects take turns, every second round backwards', () => {
  expect(order(1)).toEqual(['floor this', 'belfry this', 'belfry, limited this', 'pg-boss this'])
  expect(order(2)).toEqual(order(1).reverse())
  expect(order(3)).toEqual(order(1))
})

test('against another program the two follow each other, and each goes first in every second pair', () => {
  expect(order(1, OTHER)).toEqual(['belfry this', 'belfry other', 'belfry, limited this', 'belfry, limited other'])
  expect(order(2, OTHER)).toEqual(['belfry, limited other', 'belfry, limited this', 'belfry other', 'belfry this'])
})

test('a peer that is named takes part against another program, once: it is the same in both', () => {
  expect(order(1, OTHER, ['belfry', 'pg-boss'])).toEqual(['belfry this', 'belfry other', 'pg-boss this'])
})

test('a subject that is named is measured alone', () => {
  expect(order(1, undefined, ['pg-boss'])).toEqual(['pg-boss this'])
})
