import { constants } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemRandom } from '../../runtime/random.ts'

interface Owner {
  uid: number
  gid: number
}

/**
 * Replaces a file in one step. The new file belongs to the owner of its directory unless told otherwise, so that what
 * root wrote can be used by the directory's owner later. Nothing is written through a symbolic link: root may be
 * writing into a directory that belongs to an unprivileged user.
 */
export async function replaceFile(path: string, content: string, mode: number, owner?: Owner): Promise<void> {
  const draft = `${path}.${systemRandom.bytes(6).toString('hex')}.new`
  const file = await open(draft, 'wx', mode)
  try {
    await file.writeFile(content)
    await file.chmod(mode)
    if (process.getuid?.() === 0) {
      const { uid, gid } = owner ?? (await stat(dirname(path)))
      await file.chown(uid, gid)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Opens a file to append to, made when missing, never through a symbolic link. */
export async function openForAppend(path: string, mode: number) {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0)
  const file = await open(path, flags, mode)
  if (process.getuid?.() === 0) {
    const { uid, gid } = await stat(dirname(path))
    await file.chown(uid, gid)
  }
  return file
}
