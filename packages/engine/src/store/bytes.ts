/** Reads a `bytea` as the engine's connections give it: in hex, after `\x`. */
export const bytesOf = (text: string): Buffer => Buffer.from(text.slice(2), 'hex')
