import { expect, test } from 'vitest'
import { base64Body } from './base64.ts'

test('bytes of any length and value come back as they were', () => {
  for (const length of [0, 1, 2, 3, 8_192, 100_000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => i % 256)
    expect(Buffer.from(base64Body(bytes).base64, 'base64').equals(bytes)).toBe(true)
  }
  expect(base64Body(new Uint8Array([255, 0]).buffer)).toEqual({ base64: '/wA=' })
})
