import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keepAdminKey } from '../start/admin-key.ts'
import { readConnection } from './connection.ts'

async function setup() {
  const dataDir = mkdtempSync(join(tmpdir(), 'belfry-cli-test-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const { key } = await keepAdminKey(dataDir)
  return { key, BELFRY_DATA_DIR: dataDir }
}

test('the node is on this machine and its key in the data directory unless told otherwise', async () => {
  const { key, BELFRY_DATA_DIR } = await setup()
  expect(await readConnection({ BELFRY_DATA_DIR })).toEqual({ url: 'http://127.0.0.1:8080', key })
  expect(
    await readConnection({ BELFRY_DATA_DIR, BELFRY_URL: 'http://localhost:9/belfry/', BELFRY_API_KEY: 'bk_1' }),
  ).toEqual({ url: 'http://localhost:9/belfry', key: 'bk_1' })
})

test('a key that is kept here is shown to no other machine', async () => {
  const { BELFRY_DATA_DIR } = await setup()
  for (const BELFRY_URL of ['https://belfry.example.com', 'http://127.0.0.1.example.com', 'http://10.0.0.1']) {
    await expect(readConnection({ BELFRY_DATA_DIR, BELFRY_URL })).rejects.toThrow(/BELFRY_API_KEY is not set/)
  }
})

test('without any key it is said where one would be looked for', async () => {
  await expect(readConnection({ BELFRY_DATA_DIR: '/nowhere' })).rejects.toThrow(
    /there is no API key: set BELFRY_API_KEY, .*\/nowhere has no admin key/,
  )
})

test.each(['localhost:8080', 'ftp://x', 'http://user:secret@host'])('BELFRY_URL=%s is refused', async (BELFRY_URL) => {
  await expect(readConnection({ BELFRY_URL })).rejects.toThrow(/BELFRY_URL .*must look like http:/)
  await expect(readConnection({ BELFRY_URL })).rejects.not.toThrow(/secret/)
})
