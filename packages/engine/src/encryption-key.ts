import { link, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from './options.ts'
import { systemRandom } from './runtime/random.ts'
import type { Database } from './store/database.ts'
import { replaceFile } from './store/embedded/private-file.ts'
import { keyFromMeta, openVault } from './vault/encryption-key.sql.ts'
import { readEncryptionKey } from './vault/vault.ts'

const FILE = 'encryption.key'
const KEY_BYTES = 32
const OWNER_ONLY = 0o600

export interface FoundKey {
  key: Uint8Array
  /** Null: as it should be. */
  weakness: string | null
}

/** The key that was given; else one that is made once: beside the embedded database, or inside a database of others. */
export async function findEncryptionKey(db: Database, settings: Settings): Promise<FoundKey> {
  const found = await foundKey(db, settings)
  await openVault(db, found.key)
  return found
}

async function foundKey(db: Database, { encryptionKey, database, dataDir, logger }: Settings): Promise<FoundKey> {
  if (encryptionKey !== null) return { key: readEncryptionKey(encryptionKey), weakness: null }
  if (database === null) return { key: await keyFromFile(join(dataDir, FILE)), weakness: null }
  const weakness = 'no encryptionKey was given: whoever reads the database can read the secrets in it too'
  logger.warn('the encryption key is kept in the database', { reason: weakness })
  return { key: await keyFromMeta(db, systemRandom), weakness }
}

/** Of several that start at once, the first one's key counts: a link is made only where there is none. */
async function keyFromFile(path: string): Promise<Uint8Array> {
  const known = await readIfThere(path)
  if (known !== null) return readEncryptionKey(known)
  const draft = `${path}.${systemRandom.bytes(6).toString('hex')}`
  await replaceFile(draft, `${systemRandom.bytes(KEY_BYTES).toString('base64')}\n`, OWNER_ONLY)
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return readEncryptionKey(await readFile(path, 'utf8'))
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
