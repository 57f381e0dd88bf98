import { BelfryError } from '../errors.ts'
import { withoutNul } from '../store/without-nul.ts'

const MAX_CHECKPOINT_BYTES = 65_536
const MAX_PROGRESS_CHARACTERS = 1_000
const MAX_MESSAGE_CHARACTERS = 8_192

/** A checkpoint as JSON; refused if it cannot be kept. */
export function checkpointJson(value: unknown): string {
  const json = JSON.stringify(value)
  if (json === undefined) throw new BelfryError('invalid_argument', 'a checkpoint must be a JSON value')
  if (Buffer.byteLength(json) > MAX_CHECKPOINT_BYTES) {
    throw new BelfryError('payload_too_large', `a checkpoint may have at most ${MAX_CHECKPOINT_BYTES} bytes as JSON`)
  }
  return json
}

export interface Progress {
  /** Between 0 and 1. */
  value: number
  text?: string
}

export function progressJson({ value, text }: Progress): string {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) {
    throw new BelfryError('invalid_argument', 'the value of a progress must be a number from 0 to 1')
  }
  const words = text === undefined ? {} : { text: clip(String(text), MAX_PROGRESS_CHARACTERS) }
  return JSON.stringify({ value, ...words })
}

export const logMessage = (message: unknown): string => clip(String(message), MAX_MESSAGE_CHARACTERS)

const clip = (text: string, characters: number): string => withoutNul(text.slice(0, characters)).toWellFormed()
