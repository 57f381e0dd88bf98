/** As much of `fetch` as the client uses; whatever offers this can stand in for it. */
export type Fetch = (url: string, request: HttpRequest) => Promise<HttpAnswer>

export interface HttpRequest {
  method: string
  headers: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer> | Blob
  signal: AbortSignal
  /** A redirect would turn a POST into a GET; it is reported instead. */
  redirect: 'manual'
}

export interface HttpAnswer {
  status: number
  headers: { get(name: string): string | null }
  text(): Promise<string>
  arrayBuffer(): Promise<ArrayBuffer>
}
