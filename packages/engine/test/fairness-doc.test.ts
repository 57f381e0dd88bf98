import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Turns } from '../src/ready/turn.ts'

const START = Date.UTC(2026, 0, 1)
const TENANTS: Record<string, number> = { a: 1, b: 2, c: 3 }

test('the worked example of the page about fairness is what happens', () => {
  const page = readFileSync(new URL('../../../docs/internals/fairness.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| ([abc]) \| (\d) \| (\d+) \| (-?\d+) \|$/gm)].map(([, flow, ...numbers]) => ({
    tenantId: TENANTS[flow as string] as number,
    numbers: numbers.map(Number) as [priority: number, start: number, turn: number],
  }))
  expect(rows).toHaveLength(9)
  const turns = new Turns()
  turns.learn({ shared: new Set([1]), weights: new Map([[2, 2]]) })
  for (const { tenantId, numbers } of rows) {
    const [priority, start, turn] = numbers
    const given = turns.next(START, { queueId: 1, tenantId, fairnessKey: null, priority }) / 1_000 - START
    expect([given + (priority - 5) * 30_000, given]).toEqual([start, turn])
  }
})
