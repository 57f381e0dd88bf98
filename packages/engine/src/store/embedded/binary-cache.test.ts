import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { copyToCache } from './binary-cache.ts'

/** A package as npm leaves it without install scripts: no links, and here not even the right to execute. */
function setup() {
  const place = mkdtempSync(join(tmpdir(), 'belfry-cache-test-'))
  onTestFinished(() => rmSync(place, { recursive: true, force: true }))
  const native = join(place, 'package', 'native')
  for (const folder of ['bin', 'lib']) mkdirSync(join(native, folder), { recursive: true })
  writeFileSync(join(native, 'bin', 'postgres'), 'program', { mode: 0o600 })
  writeFileSync(join(native, 'lib', 'libpq.so.5.18'), 'library', { mode: 0o600 })
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
  writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(links))
  const cache = join(place, 'cache')
  const copy = (version = '18.0.0') => copyToCache({ native, version }, null, [cache])
  return { native, cache, copy }
}

test('a copy has the links that npm did not make, and can be run and read by others but not written', async () => {
  const t = setup()
  const copied = await t.copy()
  expect(readlinkSync(join(copied, 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18')
  expect(readFileSync(join(copied, 'lib', 'libpq.so.5'), 'utf8')).toBe('library')
  expect(lstatSync(join(copied, 'bin', 'postgres')).mode & 0o777).toBe(0o755)
  expect(lstatSync(copied).mode & 0o777).toBe(0o755)
  expect(readdirSync(join(t.native, 'lib'))).toEqual(['libpq.so.5.18'])
})

test('many who copy at once end up with one copy and no leftovers', async () => {
  const t = setup()
  const copies = await Promise.all(Array.from({ length: 6 }, () => t.copy()))
  expect(new Set(copies).size).toBe(1)
  expect(readdirSync(t.cache)).toHaveLength(1)
})

test('another version or other content is another copy', async () => {
  const t = setup()
  const first = await t.copy()
  expect(await t.copy('18.1.0')).not.toBe(first)
  writeFileSync(join(t.native, 'bin', 'initdb'), 'one more')
  expect(await t.copy()).not.toBe(first)
})

test('a draft of a killed process is cleared away', async () => {
  const t = setup()
  mkdirSync(join(t.cache, 'draft-999999999-abcd'), { recursive: true })
  await t.copy()
  expect(readdirSync(t.cache)).toHaveLength(1)
})

test('a cache that others can write is not trusted', async () => {
  const t = setup()
  mkdirSync(t.cache)
  chmodSync(t.cache, 0o777)
  await expect(t.copy()).rejects.toMatchObject({ code: 'embedded_database' })
})
