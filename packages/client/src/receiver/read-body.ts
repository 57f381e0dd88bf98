import { ReceiverError } from './receiver-error.ts'

/** All bytes of a stream, or `body_too_large` before more than that is kept. */
export async function readBody(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    length += chunk.length
    checkLength(length, maxBytes)
    chunks.push(chunk)
  }
  const body = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    body.set(chunk, at)
    at += chunk.length
  }
  return body
}

export function checkLength(length: number, maxBytes: number): void {
  if (length > maxBytes) throw new ReceiverError('body_too_large', `the body has more than ${maxBytes} bytes`)
}
