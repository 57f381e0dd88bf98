/** Lets whatever else is waiting have its turn, in the middle of long reckoning. */
export const yieldTurn = (): Promise<void> => new Promise((go) => setImmediate(go))
