/**
 * So long after its timeout an attempt is left to its holder: it may have begun late, takes a moment to stop, and a worker that is
 * alive is heard of. No lease is renewed beyond that, and the reaper closes it.
 */
export const OVERTIME_MS = 11_000

/** What a worker still renews at this time before the end of its overtime did not stop when its time was up. */
export const UNSTOPPED_MS = 5_000
