import { BelfryError } from '../../errors.ts'

const EXPLANATIONS: { sign: RegExp; says: (place: string) => string }[] = [
  {
    sign: /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/,
    says: (place) => `the disk that holds ${place} is full; free some room or choose another data directory`,
  },
  {
    sign: /Read-only file system|EROFS/,
    says: (place) => `${place} is on a read-only file system; choose another data directory (BELFRY_DATA_DIR)`,
  },
  {
    sign: /could not look up effective user ID/,
    says: () =>
      'PostgreSQL needs an account for the user it runs as, and this user id has none in /etc/passwd; ' +
      'add one, start Belfry as another user, or set BELFRY_DATABASE_URL',
  },
  {
    sign: /Permission denied|EACCES|EPERM|Operation not permitted/,
    says: (place) =>
      `${place} cannot be read and written; give it to the user who runs Belfry, or choose another data directory (BELFRY_DATA_DIR)`,
  },
  {
    sign: /database files are incompatible with server/,
    says: (place) => `${place} was made by another version of PostgreSQL`,
  },
]

/** Says what is wrong and what would be right; what PostgreSQL itself said comes last. */
export function embeddedFailure(what: string, place: string, said: string, cause?: unknown): BelfryError {
  const known = EXPLANATIONS.find(({ sign }) => sign.test(said))
  const tail = lastLines(said)
  const message = `${what}: ${known ? known.says(place) : 'see what PostgreSQL said'}${tail ? `\n${tail}` : ''}`
  return new BelfryError('embedded_database', message, cause === undefined ? {} : { cause })
}

/** Turns an error of the file system into one that says what to do; leaves others as they are. */
export function fileFailure(place: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code
  if (error instanceof BelfryError || typeof code !== 'string' || !(error instanceof Error)) return error
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new BelfryError(
      'embedded_database',
      `${place} is not a directory; choose another data directory (BELFRY_DATA_DIR)`,
      {
        cause: error,
      },
    )
  }
  return EXPLANATIONS.some(({ sign }) => sign.test(error.message))
    ? embeddedFailure('the embedded database cannot be started', place, error.message, error)
    : error
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-8).join('\n')
}
