import { BelfryError, type Complaint } from './errors.ts'
import { nearestName } from './job/nearest-name.ts'

/** What stands behind the last argument of a call: an object with known names, for people without a type checker too. */
export function checkedOptions<Options extends object>(
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  if (typeof options !== 'object' || options === null) {
    throw invalidArgument('options', `must be an object with ${names.join(', ')}`)
  }
  for (const name of Object.keys(options)) {
    if ((names as readonly string[]).includes(name)) continue
    throw invalidArgument(name, `there is no such option; there is ${names.join(', ')}`, nearestName(name, names))
  }
  return options
}

export function invalidArgument(path: string, message: string, suggestion?: string): BelfryError {
  const complaint: Complaint = suggestion === undefined ? { path, message } : { path, message, suggestion }
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  return new BelfryError('invalid_argument', `${path}: ${message}${hint}`, { complaints: [complaint] })
}
