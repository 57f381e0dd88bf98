import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { BelfryError } from '../../errors.ts'

/** Whom the server's processes run as. */
export interface ServerUser {
  uid: number
  gid: number
  /** Whether the server's processes are given this user; otherwise they simply inherit ours. */
  switched: boolean
}

/**
 * PostgreSQL refuses to run as root. So root gives it to the owner of the existing cluster, else to the owner of the
 * data directory, else to `postgres` or `nobody`; everybody else runs it as himself.
 */
export function chooseServerUser(cluster: string, dataDir: string): ServerUser | null {
  if (!process.getuid || !process.getgid) return null
  const [uid, gid] = [process.getuid(), process.getgid()]
  const clusterOwner = ownerOf(cluster)
  if (uid !== 0) {
    if (clusterOwner && clusterOwner.uid !== uid) throw foreignCluster(cluster, clusterOwner.uid)
    return { uid, gid, switched: false }
  }
  if (clusterOwner && clusterOwner.uid !== 0) return { ...clusterOwner, switched: true }

  const accounts = readAccounts()
  const directoryOwner = ownerOf(dataDir)
  const account =
    // initdb looks its user up by number, so an owner without an account (a volume's) cannot be taken.
    accounts.find((one) => one.uid !== 0 && one.uid === directoryOwner?.uid) ??
    accounts.find((one) => one.uid !== 0 && one.name === 'postgres') ??
    accounts.find((one) => one.uid !== 0 && one.name === 'nobody')
  if (!account) {
    throw new BelfryError(
      'embedded_database',
      'PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as; ' +
        'create one of them, start Belfry as an ordinary user, or set BELFRY_DATABASE_URL',
    )
  }
  return { uid: account.uid, gid: account.gid, switched: true }
}

/** Whether the user may pass through every directory above the path, as far as the permission bits tell. */
export function canReach(user: ServerUser, path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const { uid, gid, mode } = statSync(at)
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (dirname(at) === at) return true
  }
}

interface Account {
  name: string
  uid: number
  gid: number
}

function readAccounts(): Account[] {
  try {
    return readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .filter((fields) => fields.length >= 4)
      .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
  } catch {
    return []
  }
}

function ownerOf(path: string): { uid: number; gid: number } | null {
  try {
    const { uid, gid } = statSync(path)
    return { uid, gid }
  } catch {
    return null
  }
}

function foreignCluster(cluster: string, owner: number): BelfryError {
  const name = readAccounts().find((account) => account.uid === owner)?.name
  const whose = name ? `user ${name} (uid ${owner})` : `uid ${owner}`
  return new BelfryError(
    'embedded_database',
    `the embedded database in ${cluster} belongs to ${whose}; ` +
      'start Belfry as that user or as root, or choose another data directory (BELFRY_DATA_DIR)',
  )
}
