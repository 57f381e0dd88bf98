import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keepAdminKey, readAdminKey } from './admin-key.ts'

function setup() {
  const place = mkdtempSync(join(tmpdir(), 'belfry-cli-test-'))
  onTestFinished(() => rmSync(place, { recursive: true, force: true }))
  return { place, dataDir: join(place, 'data') }
}

test('the first start makes a key that nobody else may read, and later ones find it', async () => {
  const { dataDir } = setup()
  expect(await readAdminKey(dataDir)).toBeNull()
  const first = await keepAdminKey(dataDir)
  expect(first).toMatchObject({ made: true, file: join(dataDir, 'admin-key') })
  expect(first.key).toMatch(/^bk_admin_[\w-]{43}$/)
  expect(statSync(first.file).mode & 0o777).toBe(0o600)
  expect(readFileSync(first.file, 'utf8')).toBe(`${first.key}\n`)
  expect(await keepAdminKey(dataDir)).toEqual({ ...first, made: false })
  expect(await readAdminKey(dataDir)).toBe(first.key)
})

test('of many first starts at once one makes the key, and all have it', async () => {
  const { dataDir } = setup()
  const keys = await Promise.all(Array.from({ length: 20 }, () => keepAdminKey(dataDir)))
  expect(keys.filter(({ made }) => made)).toHaveLength(1)
  expect(new Set(keys.map(({ key }) => key)).size).toBe(1)
})

test('a file that holds something else is not taken for a key', async () => {
  const { place } = setup()
  writeFileSync(join(place, 'admin-key'), 'oops\n')
  await expect(keepAdminKey(place)).rejects.toThrow(/admin-key does not hold an admin key; remove it/)
})

test('a data directory that cannot be one is told, with what to do', async () => {
  const { place } = setup()
  writeFileSync(join(place, 'file'), '')
  await expect(keepAdminKey(join(place, 'file'))).rejects.toThrow(/cannot be kept .*BELFRY_DATA_DIR/)
})
