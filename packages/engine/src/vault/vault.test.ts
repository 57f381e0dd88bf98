import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { readEncryptionKey, Vault } from './vault.ts'

const plain = Buffer.from('p4ssw0rd, in clear')

test('what is sealed can be opened with the same key and context, also when it is empty', () => {
  const vault = new Vault(randomBytes(32))
  expect(vault.open(vault.seal(plain, 'secret:1:a'), 'secret:1:a')).toEqual(plain)
  expect(vault.open(vault.seal(Buffer.alloc(0), 'x'), 'x')).toEqual(Buffer.alloc(0))
})

test('what is sealed shows nothing of it, and looks different each time', () => {
  const vault = new Vault(randomBytes(32))
  const [one, other] = [vault.seal(plain, 'a'), vault.seal(plain, 'a')]
  expect(one.includes(plain)).toBe(false)
  expect(one.equals(other)).toBe(false)
  expect(one.length).toBe(1 + 12 + plain.length + 16)
  expect(one[0]).toBe(1)
})

test('it cannot be opened with another key or in another context', () => {
  const sealed = new Vault(randomBytes(32)).seal(plain, 'secret:1:a')
  expect(() => new Vault(randomBytes(32)).open(sealed, 'secret:1:a')).toThrow(
    expect.objectContaining({ code: 'cannot_decrypt' }),
  )
  const key = randomBytes(32)
  const of = new Vault(key).seal(plain, 'secret:1:a')
  for (const context of ['secret:2:a', 'secret:1:b', 'payload:1:a', '']) {
    expect(() => new Vault(key).open(of, context)).toThrow(expect.objectContaining({ code: 'cannot_decrypt' }))
  }
})

test('one changed bit anywhere, or a missing byte, is noticed', () => {
  const vault = new Vault(randomBytes(32))
  const sealed = vault.seal(plain, 'a')
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed)
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
    expect(() => vault.open(changed, 'a'), `bit ${bit}`).toThrow(expect.objectContaining({ code: 'cannot_decrypt' }))
  }
  for (let length = 0; length < sealed.length; length++) {
    expect(() => vault.open(sealed.subarray(0, length), 'a')).toThrow(
      expect.objectContaining({ code: 'cannot_decrypt' }),
    )
  }
})

test('a key is 32 bytes in hex or base64, in any of their spellings', () => {
  const key = randomBytes(32)
  const spellings = [
    key.toString('hex'),
    key.toString('hex').toUpperCase(),
    key.toString('base64'),
    key.toString('base64url'),
    `  ${key.toString('base64')}\n`,
  ]
  for (const text of spellings) expect(Buffer.from(readEncryptionKey(text))).toEqual(key)
})

test('anything else is refused, and not repeated in the message', () => {
  const wrong = ['', 'hunter2', randomBytes(31).toString('base64'), randomBytes(33).toString('hex'), 'ä'.repeat(43)]
  for (const text of [...wrong, 7 as never, null as never]) {
    expect(() => readEncryptionKey(text)).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  }
  expect(() => readEncryptionKey('hunter2')).toThrow(expect.not.stringContaining('hunter2'))
})
