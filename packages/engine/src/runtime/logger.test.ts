import { expect, test } from 'vitest'
import { lineLogger } from './logger.ts'

function setup() {
  const lines: string[] = []
  return { lines, logger: lineLogger((line) => lines.push(line)) }
}

test('a message is always one line, whatever it and its fields hold', () => {
  const { lines, logger } = setup()
  logger.error('it broke\nbadly', { error: new Error('first\nsecond'), text: 'a\r\nb' })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toMatch(/[\r\n]/)
  expect(lines[0]).toContain('it broke badly')
})

test('plain values stand bare and values with spaces are quoted', () => {
  const { lines, logger } = setup()
  logger.info('started', { pid: 12, host: '127.0.0.1:80', path: '/a b' })
  expect(lines).toEqual(['info  started  pid=12 host=127.0.0.1:80 path="/a b"'])
})

test('a field that cannot be shown does not throw', () => {
  const { lines, logger } = setup()
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  logger.warn('odd', { cycle, none: undefined, big: 2n ** 70n })
  expect(lines[0]).toContain('cycle=[unprintable] none=undefined big=1180591620717411303424')
})
