/** A mistake in what the user asked for: one line that says what is wrong and what would be right. Exit code 2. */
export class UsageError extends Error {}
