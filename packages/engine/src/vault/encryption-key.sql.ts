import { BelfryError } from '../errors.ts'
import type { Random } from '../runtime/random.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { readEncryptionKey, Vault } from './vault.ts'

/** Whoever comes first decides; everybody reads what stands there afterwards. */
const PUT_ONCE = statement(
  'put_meta_once',
  `insert into belfry.meta (key, value) values ($1, to_jsonb($2::text)) on conflict do nothing`,
)
const READ = statement('read_meta', `select m.value #>> '{}' from belfry.meta m where m.key = $1`)

async function firstWritten(db: Queryable, key: string, value: string): Promise<string> {
  await db.execute(PUT_ONCE, [key, value])
  const [row] = await db.query<[string]>(READ, [key])
  return row?.[0] ?? value
}

/**
 * For an installation that was given no key: made once and kept in the database, so that all nodes agree. Whoever reads the
 * database can then read what is sealed in it.
 */
export async function keyFromMeta(db: Queryable, random: Random): Promise<Uint8Array> {
  return readEncryptionKey(await firstWritten(db, 'encryption_key', random.bytes(32).toString('base64')))
}

const PROOF = 'belfry'
const PROOF_CONTEXT = 'encryption key'

/**
 * A vault whose key is the one that this database has been written with; with another, nothing in it could be opened, and
 * that is better known at the start than at the first call that needs a secret.
 */
export async function openVault(db: Queryable, key: Uint8Array): Promise<Vault> {
  const vault = new Vault(key)
  const proof = await firstWritten(
    db,
    'encryption_proof',
    vault.seal(Buffer.from(PROOF), PROOF_CONTEXT).toString('base64'),
  )
  try {
    vault.open(Buffer.from(proof, 'base64'), PROOF_CONTEXT)
  } catch (cause) {
    const message = 'is not the key that this database has been written with'
    throw new BelfryError('invalid_option', `encryptionKey: ${message}`, {
      complaints: [{ path: 'encryptionKey', message }],
      cause,
    })
  }
  return vault
}
