import { BelfryError, clockMs } from '@belfry/engine'

/** Milliseconds of a duration as people write it (`PT15M`, `90s`); throws what is wrong with it. */
export function readDuration(path: string, text: string, maxMs: number): number {
  const refuse = (message: string): BelfryError =>
    new BelfryError('invalid_request', `${path}: ${message}`, { complaints: [{ path, message }] })
  let ms: number
  try {
    ms = clockMs(text)
  } catch (error) {
    throw refuse((error as Error).message)
  }
  if (ms > maxMs) throw refuse(`is longer than ${maxMs / 86_400_000} days`)
  return ms
}
