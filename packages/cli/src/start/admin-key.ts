import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemRandom } from '@belfry/engine'
import { UsageError } from '../usage-error.ts'

export interface AdminKey {
  key: string
  file: string
  /** Whether this start made it: then it is shown, once. */
  made: boolean
}

const adminKeyFile = (dataDir: string): string => join(dataDir, 'admin-key')

/** The admin key of a data directory, made when there is none. Of several that start at once, one makes it. */
export async function keepAdminKey(dataDir: string): Promise<AdminKey> {
  const file = adminKeyFile(dataDir)
  try {
    const kept = await readAdminKey(dataDir)
    if (kept !== null) return { key: kept, file, made: false }
    const key = `bk_admin_${systemRandom.bytes(32).toString('base64url')}`
    await mkdir(dataDir, { recursive: true, mode: 0o755 })
    if (await writeOnce(file, `${key}\n`)) return { key, file, made: true }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new UsageError(
      `the admin key cannot be kept in ${file} (${code}); let BELFRY_DATA_DIR name a directory that can be written, or set BELFRY_ADMIN_KEY`,
    )
  }
  return keepAdminKey(dataDir)
}

/** Null: there is none. */
export async function readAdminKey(dataDir: string): Promise<string | null> {
  const file = adminKeyFile(dataDir)
  let text: string
  try {
    text = (await readFile(file, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (/^[!-~]{32,}$/.test(text)) return text
  throw new UsageError(`${file} does not hold an admin key; remove it, and the next start makes a new one`)
}

/** The file appears with all it holds or not at all. False: somebody else was quicker. */
async function writeOnce(file: string, content: string): Promise<boolean> {
  const draft = `${file}.${systemRandom.bytes(6).toString('hex')}.new`
  const handle = await open(draft, 'wx', 0o600)
  try {
    await handle.writeFile(content)
    if (process.getuid?.() === 0) {
      // What root wrote can be used by the directory's owner later.
      const { uid, gid } = await stat(join(file, '..'))
      await handle.chown(uid, gid)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  try {
    await link(draft, file)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    // Some file systems have no links; there two first starts at once are not told apart.
    await rename(draft, file)
    return true
  } finally {
    await rm(draft, { force: true })
  }
}
