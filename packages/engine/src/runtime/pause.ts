/** For retries inside a step, in real time; a loop's own waiting is the loop's. */
export const pause = (ms: number): Promise<void> => new Promise((wake) => setTimeout(wake, ms))
