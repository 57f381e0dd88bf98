import { expect, test } from 'vitest'
import { tooLarge } from './job-sizes.ts'

const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

test.each([
  ['n'.repeat(255), {}, null],
  ['n'.repeat(256), {}, /name would have 256 characters/],
  ['n', { payload: nested(100) }, null],
  ['n', { payload: nested(101) }, /more than 100 levels deep/],
  ['n', { payload: 'ä'.repeat(131_071) }, null],
  ['n', { payload: 'ä'.repeat(131_072) }, /would have 262146 bytes/],
  ['n', { labels: { ['l'.repeat(129)]: '' } }, /label l+ is too long/],
  ['n', { labels: { l: 'v'.repeat(257) } }, /label l is too long/],
  ['n', { labels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${index}`, ''])) }, /65 labels/],
])('what no node would take is known before it is sent (%#)', (name, job, expected) => {
  const problem = tooLarge(name, job)
  if (expected === null) expect(problem).toBeNull()
  else expect(problem).toMatch(expected)
})
