import type { CallOptions, Transport } from '../transport.ts'
import type { PutPayloads } from '../wire.ts'

export interface PutPayloadOptions extends CallOptions {
  /** What it is; else a Blob's own type, `text/plain` for a text, `application/octet-stream` for bytes. */
  contentType?: string
}

/** Payloads that are too large to stand in a job: kept apart, and named in jobs as `payloadRef`. */
export class Payloads {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Up to 10 MiB. A call that is repeated may keep it twice; what no job names goes by itself. */
  put(
    data: string | Uint8Array | ArrayBuffer | Blob,
    options: PutPayloadOptions = {},
  ): Promise<PutPayloads['response']> {
    const { contentType = typeOf(data), ...call } = options
    return this.#transport.upload('PUT /v1/payloads', bytesOf(data), contentType, call)
  }

  get(payloadRef: string, options?: CallOptions): Promise<{ bytes: Uint8Array<ArrayBuffer>; contentType: string }> {
    return this.#transport.download('GET /v1/payloads/{ref}', { path: { ref: payloadRef } }, options)
  }

  delete(payloadRef: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/payloads/{ref}', { path: { ref: payloadRef } }, options)
  }
}

function typeOf(data: string | Uint8Array | ArrayBuffer | Blob): string {
  if (typeof data === 'string') return 'text/plain; charset=utf-8'
  return (data instanceof Blob && data.type) || 'application/octet-stream'
}

function bytesOf(data: string | Uint8Array | ArrayBuffer | Blob): Uint8Array<ArrayBuffer> | Blob {
  if (typeof data === 'string') return new TextEncoder().encode(data)
  if (data instanceof Blob) return data
  // Bytes that other threads may change are none that `fetch` sends.
  return data instanceof Uint8Array && data.buffer instanceof ArrayBuffer
    ? (data as Uint8Array<ArrayBuffer>)
    : new Uint8Array(data)
}
