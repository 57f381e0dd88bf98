/** Sends pieces one after the other, and makes each while the database is at work on the one before it. */
export async function whileSending<Piece>(
  pieces: Iterable<Piece>,
  send: (piece: Piece) => Promise<unknown>,
): Promise<void> {
  let sent: Promise<unknown> = Promise.resolve()
  for (const piece of pieces) {
    await sent
    sent = send(piece)
    // Should the next piece fail to be made, that is what is thrown.
    sent.catch(() => {})
  }
  await sent
}
