import { BelfryError } from '@belfry/engine'

/** A version as a strong entity tag. */
export const etagOf = (version: number): string => `"${version}"`

/** The version that `If-Match` asks for; undefined: any. */
export function versionOf(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined
  const digits = /^\s*"(\d{1,9})"\s*$/.exec(ifMatch)?.[1]
  if (digits !== undefined) return Number(digits)
  const message = 'must be the ETag of the job, with its quotes'
  throw new BelfryError('invalid_request', `If-Match ${message}`, { complaints: [{ path: 'if-match', message }] })
}
