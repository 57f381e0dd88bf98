/** `String.fromCharCode` takes only so many arguments. */
const CHUNK = 8_192

/** Bytes for `http.body` of a job, in the form that JSON can carry. */
export function base64Body(bytes: Uint8Array | ArrayBuffer): { base64: string } {
  const all = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)
  let text = ''
  for (let at = 0; at < all.length; at += CHUNK) text += String.fromCharCode(...all.subarray(at, at + CHUNK))
  return { base64: btoa(text) }
}
